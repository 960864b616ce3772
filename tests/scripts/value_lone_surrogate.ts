const cut = "\u{1f600}".slice(0, 1);
return [cut, `${cut}\\ud800\n${cut}`, { [cut]: cut }, "\\ud800", "\u{1f600}", await mock.echo({ s: cut })];
