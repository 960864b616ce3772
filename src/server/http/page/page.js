// The page of runs: asks its server once a second and shows the answer.
//
// Every name, message and argument was chosen by a script, a server or a client. All of it becomes text through
// `textContent`; the page's policy makes sure of that, because the browser refuses text that becomes markup.
"use strict";

(() => {
  const VISIBLE_INTERVAL = 1000;
  const HIDDEN_INTERVAL = 5000;
  // Number of runs in the list until the user asks for more.
  const FEW = 30;
  // An approval that appears under the pointer must not be answered by a click that was meant for something else.
  const MIN_SHOWN = 700;
  // The key in the session storage, which belongs to this tab and to this address with its port. A reload keeps the
  // session.
  const KEY = "cx-session";

  const $ = (id) => document.getElementById(id);
  let token = null;
  let state = null;
  let shownRun = null;
  let shownVersion = "";
  let limit = FEW;
  let timer = 0;
  let approvalsMade = 0;
  // What was done last.
  let notice = "";

  function make(tag, className, text) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function setText(element, text) {
    // Sets only what changes, so that neither a selection nor the position of a screen reader is lost.
    if (element.textContent !== text) element.textContent = text;
  }

  // Makes the children of `list` match `items`, in their order. Existing elements are kept, with their focus, and
  // updated.
  function sync(list, items, keyOf, create, update) {
    const known = new Map([...list.children].map((child) => [child.dataset.key, child]));
    let place = list.firstElementChild;
    for (const item of items) {
      const key = keyOf(item);
      let element = known.get(key);
      if (element) known.delete(key);
      else {
        element = create(item);
        element.dataset.key = key;
      }
      update(element, item);
      if (element === place) place = place.nextElementSibling;
      else list.insertBefore(element, place);
    }
    for (const gone of known.values()) gone.remove();
  }

  async function ask(method, path, body) {
    const response = await fetch(path, {
      method,
      headers: { Authorization: `Bearer ${token}` },
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
    if (response.status === 401) {
      signedOut("The session has ended.");
      throw new Error("the session has ended");
    }
    if (!response.ok) throw new Error((await response.text()).trim() || `status ${response.status}`);
    return response.json();
  }

  // Exchanges a one-time token, or the server's token, for a session token.
  async function signIn(text) {
    token = text;
    const session = await ask("POST", "/ui/session");
    token = session.token;
    sessionStorage.setItem(KEY, token);
    $("sign-in").hidden = true;
    $("content").hidden = false;
    setText($("status"), "");
    refresh();
  }

  function signedOut(why) {
    token = null;
    sessionStorage.removeItem(KEY);
    clearTimeout(timer);
    $("content").hidden = true;
    $("sign-in").hidden = false;
    setText($("status"), why);
  }

  async function refresh() {
    clearTimeout(timer);
    if (token === null) return;
    try {
      state = await ask("GET", "/ui/state");
      show();
    } catch (error) {
      if (token === null) return;
      setText($("status"), `No answer: ${error.message}. Has cx ended?`);
    }
    timer = setTimeout(refresh, document.hidden ? HIDDEN_INTERVAL : VISIBLE_INTERVAL);
  }

  const number = (value) => {
    if (value >= 1e6) return `${(value / 1e6).toFixed(1)}M`;
    if (value >= 1e4) return `${(value / 1e3).toFixed(1)}k`;
    return String(Math.round(value));
  };

  const counted = (value, name) => `${number(value)} ${name}${value === 1 ? "" : "s"}`;

  const bytes = (value) => {
    if (value >= 1e9) return `${(value / 1e9).toFixed(1)} GB`;
    if (value >= 1e6) return `${(value / 1e6).toFixed(1)} MB`;
    if (value >= 1e3) return `${(value / 1e3).toFixed(1)} kB`;
    return `${Math.round(value)} B`;
  };

  const duration = (milliseconds) => {
    if (milliseconds < 10_000) return `${milliseconds} ms`;
    if (milliseconds < 100_000) return `${(milliseconds / 1000).toFixed(1)} s`;
    if (milliseconds < 7_200_000) return `${Math.round(milliseconds / 60_000)} min`;
    if (milliseconds < 172_800_000) return `${Math.round(milliseconds / 3_600_000)} h`;
    return `${Math.round(milliseconds / 86_400_000)} days`;
  };

  // Ages do not need milliseconds.
  const age = (milliseconds) =>
    milliseconds < 100_000 ? `${Math.round(milliseconds / 1000)} s` : duration(milliseconds);

  const bound = (seconds) => {
    if (seconds === null || seconds === undefined) return "–";
    return seconds < 1 ? `under ${Math.round(seconds * 1000)} ms` : `under ${Math.round(seconds)} s`;
  };

  function show() {
    const running = state.servers.map((server) => server.metrics).filter(Boolean);
    const sum = (name) => running.reduce((all, metrics) => all + metrics[name], 0);
    setText(
      $("summary"),
      `${counted(state.servers.length, "server")}, ${counted(sum("runsActive"), "run")}, ` +
        `${number(sum("runsQueued"))} queued, ${counted(sum("callsActive"), "call")} in flight`,
    );
    document.title = state.approvals.length > 0 ? `(${state.approvals.length}) cx` : "cx";
    showApprovals();
    showRuns();
    showServers();
    showKeptOut();
    $("notes").hidden = state.notes.length === 0;
    sync($("note-list"), state.notes, (note) => note, () => make("li"), setText);
    drawRunAgain();
  }

  function showApprovals() {
    const count = state.approvals.length;
    $("approvals").hidden = count === 0;
    setText($("approvals-title"), count === 1 ? "1 call waits for approval" : `${count} calls wait for approval`);
    // Announced when it changes, and not once a second.
    setText($("status"), [count > 0 ? $("approvals-title").textContent : "", notice].filter(Boolean).join(". "));
    sync($("approval-list"), state.approvals, (approval) => approval.id, makeApproval, updateApproval);
  }

  // What was shown for an id never changes, whatever the server sends later: only the waiting time is updated.
  function makeApproval(approval) {
    const item = make("li", "approval");
    item.append(make("h3", "", approval.call));
    const tenant = approval.tenant ? ` of the tenant ${approval.tenant}` : "";
    const asker = approval.script ? `The script ${approval.script}${tenant} asks to make this call once.` : "";
    item.append(make("p", "", `${asker} Because: ${approval.reason}.`));
    if (!approval.answerable) {
      item.append(make("p", "soft", "It is answered where its run was started, at the client or at the terminal; or it comes after another."));
      return item;
    }
    if (approval.description) {
      item.append(make("p", "soft", `${approval.server} says of the tool: ${approval.description}`));
    }
    const shown = make("pre");
    const text = make("span", "", approval.arguments);
    text.id = `arguments-${++approvalsMade}`;
    shown.append(text);
    shown.tabIndex = 0;
    shown.setAttribute("role", "region");
    shown.setAttribute("aria-label", `All arguments of ${approval.call}`);
    item.append(shown, make("p", "soft time"));
    const answers = make("div", "answers");
    const approve = make("button", "approve", "Approve");
    const deny = make("button", "deny", "Deny");
    const reason = make("input");
    reason.maxLength = 200;
    reason.placeholder = "Why not (optional)";
    reason.setAttribute("aria-label", `Why ${approval.call} is denied`);
    approve.setAttribute("aria-label", `Approve this call of ${approval.call}`);
    deny.setAttribute("aria-label", `Deny this call of ${approval.call}`);
    const problem = make("p", "bad");
    problem.setAttribute("role", "alert");
    for (const button of [approve, deny]) {
      button.type = "button";
      // Two calls of one tool have the same names, and differ in what they send.
      button.setAttribute("aria-describedby", text.id);
      button.disabled = true;
      setTimeout(() => (button.disabled = false), MIN_SHOWN);
      button.addEventListener("click", () => answer(approval, item, button === approve, reason.value));
    }
    answers.append(approve, deny, reason);
    item.append(answers, problem);
    return item;
  }

  function updateApproval(item, approval) {
    const time = item.querySelector(".time");
    if (time) {
      const seconds = (milliseconds) => Math.round(milliseconds / 1000);
      setText(time, `waits for ${seconds(approval.waitedMs)} s; refused after ${seconds(approval.timeMs)} s`);
    }
  }

  async function answer(approval, item, approve, reason) {
    const setDisabled = (disabled) => {
      for (const button of item.querySelectorAll("button")) button.disabled = disabled;
    };
    setDisabled(true);
    const decision = { approve };
    if (!approve && reason.trim()) decision.reason = reason.trim();
    try {
      await ask("POST", `/ui/approvals/${encodeURIComponent(approval.id)}`, decision);
      notice = `${approve ? "Approved" : "Denied"}: ${approval.call}`;
      // The focus was on a button that is gone. It stays near, and on no button: a key that is pressed twice
      // answers one call.
      const isLost = item.contains(document.activeElement) || document.activeElement === document.body;
      item.remove();
      if (isLost) $($("approval-list").children.length > 0 ? "approvals-title" : "runs").focus();
      refresh();
    } catch (error) {
      setText(item.querySelector("[role=alert]"), error.message);
      // What is still listed can be answered still.
      setDisabled(false);
    }
  }

  function showRuns() {
    const runs = state.runs.slice(0, limit);
    $("no-runs").hidden = runs.length > 0;
    $("run-table").hidden = runs.length === 0;
    $("more-runs").hidden = state.runs.length <= limit;
    sync($("run-list"), runs, (run) => run.id, makeRun, updateRun);
  }

  function makeRun(run) {
    const row = make("tr");
    const cell = make("td");
    const name = run.script || (run.language ? "(no name)" : "(one call)");
    const open = make("button", "link", name);
    open.type = "button";
    open.setAttribute("aria-label", `Show the waterfall of ${name}, run ${run.id}`);
    open.addEventListener("click", () => (location.hash = `run-${run.id}`));
    cell.append(open);
    row.append(cell);
    for (const name of ["", "started", "took", "calls", "for"]) {
      const cell = make("td");
      if (name) cell.dataset.name = name;
      row.append(cell);
    }
    return row;
  }

  function updateRun(row, run) {
    row.classList.toggle("chosen", run.id === shownRun);
    const [, outcome, started, took, calls, client] = row.children;
    setText(outcome, run.outcome);
    outcome.className = run.outcome === "ok" ? "good" : run.durationMs === null ? "warn" : "bad";
    setText(started, `${age(run.ageMs)} ago`);
    started.title = run.started;
    setText(took, run.durationMs === null ? "" : duration(run.durationMs));
    setText(calls, `${run.calls}${run.callsFailed > 0 ? `, ${run.callsFailed} failed` : ""}`);
    setText(client, run.client);
  }

  function showServers() {
    $("no-servers").hidden = state.servers.length > 0;
    const keyOf = (server) => `${server.process}-${server.started}`;
    sync($("server-list"), state.servers, keyOf, () => make("li", "server"), updateServer);
  }

  function updateServer(item, server) {
    if (!item.firstChild) {
      item.append(make("h3"), make("p", "soft place"), make("p", "problem bad"), make("dl"), make("table"));
      const head = make("tr");
      for (const name of ["Upstream", "Breaker", "In flight", "Queued", "Calls", "95 %"]) {
        const cell = make("th", "", name);
        cell.scope = "col";
        head.append(cell);
      }
      const [thead, tbody] = [make("thead"), make("tbody")];
      thead.append(head);
      item.querySelector("table").append(thead, tbody);
    }
    const metrics = server.metrics;
    setText(item.querySelector("h3"), `Process ${server.process}, over ${server.transport}`);
    item.querySelector("table").setAttribute("aria-label", `Upstream servers of process ${server.process}`);
    setText(item.querySelector(".place"), `${server.workspace}${server.address ? `, ${server.address}` : ""}`);
    const problems = [...(metrics ? metrics.problems : [])];
    if (server.failure) problems.push(`its metrics cannot be read: ${server.failure}`);
    setText(item.querySelector(".problem"), problems.join(", "));
    const facts = !metrics
      ? [["metrics", "not served: start it with --metrics 127.0.0.1:0"]]
      : [
          ["runs", `${number(metrics.runsActive)} of ${number(metrics.runsLimit)}`],
          ["queued", number(metrics.runsQueued + metrics.engineQueued)],
          ["ended", `${number(metrics.runsOk + metrics.runsFailed)}, ${number(metrics.runsFailed)} failed`],
          ["95 % of runs", bound(metrics.runP95)],
          ["95 % of waits", bound(metrics.waitP95)],
          ["tokens kept out", number(metrics.keptOutTokens)],
          ["memory", bytes(metrics.residentBytes)],
          ["up", age(metrics.uptime * 1000)],
        ];
    const makeFact = () => {
      const fact = make("div");
      fact.append(make("dt"), make("dd"));
      return fact;
    };
    sync(item.querySelector("dl"), facts, ([name]) => name, makeFact, (fact, [name, value]) => {
      setText(fact.firstChild, name);
      setText(fact.lastChild, value);
    });
    const upstream = metrics ? metrics.upstream : [];
    item.querySelector("table").hidden = upstream.length === 0;
    const makeRow = () => {
      const row = make("tr");
      for (const name of ["", "breaker", "in flight", "queued", "calls", "95 %"]) {
        const cell = make("td");
        if (name) cell.dataset.name = name;
        row.append(cell);
      }
      return row;
    };
    sync(item.querySelector("tbody"), upstream, (one) => one.name, makeRow, (row, one) => {
      const failed = one.failed > 0 ? `, ${number(one.failed)} failed` : "";
      const calls = `${number(one.calls)}${failed}`;
      const values = [one.name, one.breaker, number(one.active), number(one.queued), calls, bound(one.p95)];
      values.forEach((value, index) => setText(row.children[index], value));
      row.children[1].className = one.breaker === "closed" ? "" : "bad";
    });
  }

  function showKeptOut() {
    const points = state.keptOut.points;
    const total = state.keptOut.total;
    const first = points.length > 0 ? points[0][1] : 0;
    const minutes = points.length > 1 ? Math.round((points[points.length - 1][0] - points[0][0]) / 60) : 0;
    setText(
      $("kept-out-text"),
      `${counted(total, "token")} by the servers that listen` +
        (minutes > 0 ? `, ${number(total - first)} of them in the last ${counted(minutes, "minute")}` : ""),
    );
    const [begin, end] = points.length > 1 ? [points[0][0], points[points.length - 1][0]] : [0, 1];
    const line = points.map(([time, tokens]) => {
      const x = ((time - begin) / Math.max(end - begin, 1)) * 600;
      const y = 115 - (tokens / Math.max(total, 1)) * 110;
      return `${x.toFixed(1)},${y.toFixed(1)}`;
    });
    $("kept-out-line").setAttribute("points", line.join(" "));
  }

  // The drawing of a run is a separate document, without scripts and without this page's origin.
  async function drawRun(id) {
    const listed = state?.runs.find((run) => run.id === id);
    shownVersion = listed ? versionOf(listed) : "";
    $("run-problem").hidden = true;
    try {
      const { address } = await ask("POST", `/ui/runs/${encodeURIComponent(id)}`);
      if (shownRun === id) $("run-frame").src = address;
    } catch (error) {
      $("run-problem").hidden = false;
      setText($("run-problem"), error.message);
    }
  }

  const versionOf = (run) => `${run.outcome} ${run.calls} ${run.callsInFlight}`;

  // Draws the shown run again when it has progressed.
  function drawRunAgain() {
    const listed = state.runs.find((run) => run.id === shownRun);
    if (listed && versionOf(listed) !== shownVersion) drawRun(shownRun);
  }

  function followAddress() {
    const id = location.hash.startsWith("#run-") ? location.hash.slice(5) : null;
    if (id === shownRun) return;
    shownRun = id;
    $("run").hidden = id === null;
    if (id !== null) {
      setText($("run-title"), `Run ${id}`);
      $("run-frame").title = `Waterfall of run ${id}`;
      drawRun(id);
      $("run-title").focus();
    }
    if (state) showRuns();
  }

  $("sign-in-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = $("token").value;
    $("token").value = "";
    signIn(text).catch((error) => setText($("status"), `Not signed in: ${error.message}`));
  });
  $("run-close").addEventListener("click", () => {
    const row = shownRun && [...$("run-list").children].find((row) => row.dataset.key === shownRun);
    location.hash = "";
    row?.querySelector("button").focus();
  });
  $("run-again").addEventListener("click", () => drawRun(shownRun));
  $("more-runs").addEventListener("click", () => {
    limit += FEW;
    showRuns();
  });
  addEventListener("hashchange", followAddress);
  document.addEventListener("visibilitychange", () => document.hidden || refresh());

  const given = location.hash.startsWith("#token=") ? location.hash.slice(7) : null;
  // Removes the token from the address, so that neither the history nor a screenshot shows it.
  if (given !== null) history.replaceState(null, "", location.pathname);
  const kept = sessionStorage.getItem(KEY);
  if (given !== null) {
    signIn(given).catch((error) => setText($("status"), `Not signed in: ${error.message}`));
  } else if (kept !== null) {
    token = kept;
    $("content").hidden = false;
    refresh().then(followAddress);
  } else {
    signedOut("");
  }
})();
