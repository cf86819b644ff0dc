"use strict";
(() => {
  const root = document.documentElement;
  const search = document.getElementById("search");
  const shown = document.getElementById("shown");
  const filters = [...document.querySelectorAll("button[data-filter]")];
  const verdicts = [...document.querySelectorAll("section.verdict")].map((section) => ({
    section,
    line: document.querySelector(`li[data-for="${section.id}"]`),
    text: null,
  }));

  const show = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = new Set(filters.filter((one) => one.getAttribute("aria-pressed") === "true").map((one) => one.dataset.filter));
    let count = 0;
    for (const verdict of verdicts) {
      if (words.length && verdict.text === null) verdict.text = verdict.section.textContent.toLowerCase();
      const seen = wanted.has(verdict.section.dataset.outcome) && words.every((word) => verdict.text.includes(word));
      verdict.section.classList.toggle("hidden", !seen);
      verdict.line.classList.toggle("hidden", !seen);
      count += seen;
    }
    shown.textContent = count === verdicts.length ? "" : `${count} of ${verdicts.length} shown`;
  };
  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(show, verdicts.length > 200 ? 150 : 0);
  });
  for (const button of filters) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      show();
    });
  }

  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
  });

  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("pre");
      try {
        await navigator.clipboard.writeText(code.textContent);
      } catch {
        // Some browsers have no clipboard for pages from a file: then the text is chosen, and copied the old way.
        getSelection().selectAllChildren(code);
        document.execCommand("copy");
      }
      button.textContent = "copied";
      setTimeout(() => { button.textContent = "copy"; }, 1500);
    });
  }

  const opened = [];
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details:not([open])")) {
      part.open = true;
      opened.push(part);
    }
  });
  addEventListener("afterprint", () => {
    for (const part of opened.splice(0)) part.open = false;
  });
  // What a link points at is never hidden.
  addEventListener("hashchange", () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target) target.classList.remove("hidden");
  });
})();
