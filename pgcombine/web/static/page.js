// Refreshes an open page: fetches it again every few seconds, and replaces the elements with the attribute data-live.
// An element with data-once gets a part of another page, once. Without JavaScript it has a link to that page, and the
// page shows the figures of the time at which it was loaded.
"use strict";

(() => {
  const every = Number(document.body.dataset.refresh) * 1000;
  const state = document.getElementById("live-state");
  const toggle = document.getElementById("live-toggle");
  let stopped = sessionStorage.getItem("pgcombine-stopped") === "yes";
  let away = false;

  function tell(text, bad) {
    if (state.textContent !== text) state.textContent = text; // screen readers read a status out whenever it is set
    state.className = bad ? "away" : "";
  }

  function parsed(text) {
    return new DOMParser().parseFromString(text, "text/html");
  }

  // Whether the reader uses a part, so that it must not be replaced: the focus is on a button, an input or a summary in
  // it, or its text is selected.
  function inUse(part) {
    const focus = document.activeElement;
    const selection = document.getSelection();
    return (part.contains(focus) && focus.matches("button, input, summary")) ||
      (!selection.isCollapsed && selection.containsNode(part, true));
  }

  function exchange(part, fresh) {
    if (!fresh || part.innerHTML === fresh.innerHTML || inUse(part)) return;
    const focus = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const open = [...part.querySelectorAll("details[open][id]")].map((one) => one.id);
    part.replaceChildren(...fresh.childNodes);
    for (const id of open) {
      const details = document.getElementById(id);
      if (details) details.open = true;
    }
    if (focus) {
      const link = [...part.querySelectorAll("a[href]")].find((one) => one.getAttribute("href") === focus);
      if (link) link.focus({ preventScroll: true });
    }
  }

  async function refresh() {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(15000) });
      if (answer.redirected && new URL(answer.url).pathname === "/login") {
        location.reload();
        return;
      }
      const fresh = parsed(await answer.text());
      const problem = fresh.querySelector("[data-problem]");
      if (problem) {
        const title = problem.querySelector("h1").textContent;
        if (document.querySelector("[data-problem]")) {
          exchange(document.querySelector("[data-problem]"), problem);
          tell("trying again");
        } else {
          away = true;
          tell("✖ " + title + ". These figures are old.", true);
        }
        return;
      }
      if (!answer.ok) throw new Error(answer.status); // a proxy's error, or 503 of a busy server
      if (document.querySelector("[data-problem]")) {
        location.reload();
        return;
      }
      for (const part of document.querySelectorAll("[data-live]")) exchange(part, fresh.getElementById(part.id));
      document.title = fresh.title;
      away = false;
      tell("refreshing");
    } catch (error) {
      away = true;
      tell("✖ The page's server doesn't answer. These figures are old.", true);
    }
  }

  async function go() {
    if (!stopped && !document.hidden) await refresh();
    setTimeout(go, every);
  }

  function label() {
    toggle.textContent = stopped ? "Refresh again" : "Stop refreshing";
    tell(stopped ? "stopped" : document.querySelector("[data-problem]") ? "trying again" : "refreshing");
  }

  async function fill(place) {
    try {
      const answer = await fetch(place.dataset.once, { headers: { Accept: "text/html" } });
      const part = parsed(await answer.text()).getElementById("part");
      if (answer.ok && part) place.replaceChildren(...part.childNodes);
    } catch (error) {
      // the link in the place stays
    }
  }

  if (every > 0) {
    toggle.hidden = false;
    toggle.addEventListener("click", () => {
      stopped = !stopped;
      sessionStorage.setItem("pgcombine-stopped", stopped ? "yes" : "no");
      label();
    });
    label();
    setTimeout(go, every);
  }
  for (const place of document.querySelectorAll("[data-once]")) fill(place);
})();
