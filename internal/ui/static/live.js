// Reloads the page in place after a change, and keeps the focus and open sections.
"use strict";
(function () {
  const changes = document.currentScript.dataset.changes;
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const address = new URL(location.href);
  if (document.currentScript.dataset.zone && zone && !address.searchParams.get("zone")) {
    address.searchParams.set("zone", zone); // only the browser has the time zone
    return location.replace(address);
  }
  const says = function (text) { document.getElementById("live").textContent = text; };
  let source, missed = false, asked = 0, later;

  async function load() {
    if (document.querySelector("form[method=post]")) return; // the user may be typing
    const turn = ++asked;
    clearTimeout(later);
    const answer = await fetch(location.href, {cache: "no-store", headers: {Accept: "text/html"}});
    const text = await answer.text();
    if (turn !== asked) return; // a newer request has started, so this response may be outdated
    if (answer.status === 429 || answer.status >= 500) {
      later = setTimeout(again, 5000 + 5000 * Math.random()); // spread the requests
      return says("The page cannot be rendered now. It shows an earlier state.");
    }
    const next = new DOMParser().parseFromString(text, "text/html");
    if (!next.getElementById("main")) return says("The page is gone: load it again.");
    const before = document.getElementById("main");
    const after = next.getElementById("main");
    const open = [...before.querySelectorAll("details")].map(function (d) { return d.open; });
    after.querySelectorAll("details").forEach(function (d, i) { d.open = Boolean(open[i]); });
    const focused = before.contains(document.activeElement) ? document.activeElement : null;
    if (focused && ["INPUT", "SELECT", "TEXTAREA"].includes(focused.tagName)) return; // the user is typing
    const at = focused ? [...before.querySelectorAll("a, summary, button, pre")].indexOf(focused) : -1;
    before.replaceChildren(...after.childNodes);
    document.getElementById("foot").replaceChildren(...next.getElementById("foot").childNodes);
    document.title = next.title;
    if (source.readyState === EventSource.OPEN) says("Live.");
    if (at >= 0) {
      const again = before.querySelectorAll("a, summary, button, pre")[at];
      if (again) again.focus({preventScroll: true});
    }
  }

  const again = function () { load().catch(function () { says("The page cannot be reached."); }); };
  const listen = function () {
    source = new EventSource(changes);
    source.onopen = function () {
      if (missed) again(); // no notification was sent for changes in the meantime
      else says("Live.");
      missed = false;
    };
    source.onmessage = again;
    source.onerror = function () {
      missed = true;
      says("Not live: the page is loaded each minute.");
    };
  };
  listen();
  setInterval(function () {
    if (source.readyState === EventSource.CLOSED) listen(); // a browser stops after a response such as 503
    again(); // relative times such as "in 5 min" change
  }, 60000);
})();
