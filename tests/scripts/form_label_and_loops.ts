label: for (const a of [1, 2, 3]) { for (;;) { if (a === 2) break label; continue label } }
'done'
