"use strict";
// Asks the server each second what is new, and draws what can be seen. Texts of jobs are only ever text.

const EVERY = 1000, AGAIN = 2000, PATIENCE = 10000, MOST_POINTS = 600, SILENT = 15, MOST_QUERIES = 12;
const RANKS = {FAILS: 0, UNDECIDED: 2, HOLDS: 3};
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const jobs = new Map();  // by the names of their folders, which stay the same when the server starts again
let next = "", serverNow = 0, gone = "", timer = 0, asking = false, isFirst = true;

// -- texts -----------------------------------------------------------------------------------------------------------

// What cannot be seen, or turns other letters around, is written out.
const shown = (text) => String(text).replace(/[^\P{C}\n\t]/gu, (letter) => "\\u{" + letter.codePointAt(0).toString(16) + "}");

function put(element, text) {
  const told = shown(text);
  if (element.textContent !== told) element.textContent = told;
  element.hidden = told === "";
}

function made(tag, className, parent, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = shown(text);
  if (parent) parent.append(element);
  return element;
}

function drawn(tag, className, parent) {
  const element = document.createElementNS(SVG, tag);
  if (className) element.setAttribute("class", className);
  parent.append(element);
  return element;
}

const exact = new Intl.NumberFormat("en", {maximumFractionDigits: 3});
const short = new Intl.NumberFormat("en", {maximumSignificantDigits: 4});
const huge = new Intl.NumberFormat("en", {notation: "compact", maximumSignificantDigits: 4});

function number(value) {
  if (value === undefined || value === null) return "–";
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-4)) return value.toExponential(3);
  return size >= 1e7 ? huge.format(value) : Number.isInteger(value) ? exact.format(value) : short.format(value);
}

function span(seconds) {
  const s = Math.max(0, seconds);
  if (s < 100) return `${Math.round(s)} s`;
  if (s < 6000) return `${Math.round(s / 60)} min`;
  return s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} days`;
}

const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString();

// -- what a job is ---------------------------------------------------------------------------------------------------

function stateOf(job) {
  if (job.ended) return {name: "failed", told: `failed at ${clock(job.at)}: ${job.ended}`};
  if (job.ended !== null) return {name: "stopped", told: `stopped at ${clock(job.at || job.alive)}`};
  const age = serverNow - job.alive;
  return age > SILENT ? {name: "silent", told: `silent for ${span(age)}`} : {name: "running", told: "running"};
}

function rankOf(job) {
  const state = stateOf(job).name;
  if (job.verdict === "FAILS" || state === "failed") return 0;
  if (state === "silent") return 1;
  return state === "stopped" ? 4 : RANKS[job.verdict] ?? 3;
}

function factsOf(job) {
  const latest = job.latest, facts = [];
  for (const [side, count] of Object.entries(latest.rows || {})) facts.push(side === "rows" ? number(count) : `${side} ${number(count)}`);
  if (facts.length) facts[facts.length - 1] += " rows";
  if (latest.batch !== undefined) facts.push(`batch ${latest.batch}`);
  if (latest.keys !== undefined) facts.push(`${number(latest.keys)} keys`);
  for (const [query, counts] of Object.entries(latest.counts || {})) {
    const told = Object.entries(counts).filter(([what, count]) => count || what === "answers");
    facts.push(`${query}: ${told.map(([what, count]) => `${number(count)} ${what}`).join(", ")}`);
  }
  facts.push(`for ${span((job.ended === null ? serverNow : job.at || job.alive) - job.started)}`);
  if (job.starts > 1) facts.push(`started ${job.starts} times`);
  return facts.join(" · ");
}

// Which charts a job has: a title, whether zero belongs to it, and how to read a point, for each line.
function panelsOf(job) {
  const found = {rate: false, oldest: false, lag: false, seconds: false}, sides = new Set(), queries = new Map();
  for (const point of job.points) {
    for (const name in found) found[name] ||= point[name] !== undefined;
    for (const side in point.unmatched) sides.add(side);
    for (const query in point.values) {
      if (!queries.has(query)) queries.set(query, new Set());
      for (const which in point.values[query]) queries.get(query).add(which);
    }
  }
  const panels = [];
  const add = (title, fromZero, lines) => { if (lines.length) panels.push({title, fromZero, lines}); };
  add("rows a second", true, found.rate ? [["rows", (p) => p.rate]] : []);
  add("unmatched rows", true, [...sides].map((side) => [side, (p) => p.unmatched?.[side]]));
  const behind = [];
  if (found.oldest) behind.push(["oldest unmatched", (p) => p.oldest]);
  if (found.lag) behind.push(["watermark", (p) => p.lag]);
  add("lag in seconds", true, behind);
  add("seconds a batch", true, found.seconds ? [["seconds", (p) => p.seconds]] : []);
  for (const [query, which] of [...queries].slice(0, MOST_QUERIES)) {
    const order = ["avg", "min", "max", "true"].filter((one) => which.has(one));
    const names = {avg: "mean", min: "lowest", max: "highest", true: "share true"};
    const rest = [...which].filter((one) => !(one in names));
    add(query, order[0] === "true", [...order, ...rest].map((one) => [names[one] || one, (p) => p.values?.[query]?.[one]]));
  }
  return panels;
}

// -- charts ----------------------------------------------------------------------------------------------------------

const WIDTH = 300, HEIGHT = 80, PAD = 4;

class Chart {
  constructor(parent) {
    this.figure = made("figure", "chart", parent);
    this.caption = made("figcaption", "", this.figure);
    this.title = made("span", "title", this.caption);
    this.keys = [];
    const plot = made("div", "plot", this.figure);
    this.svg = drawn("svg", "", plot);
    this.svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    this.svg.setAttribute("preserveAspectRatio", "none");
    this.svg.setAttribute("role", "img");
    this.paths = [];
    this.pointer = drawn("path", "pointer", this.svg);
    this.high = made("span", "scale high", plot);
    this.low = made("span", "scale low", plot);
    const times = made("div", "times", this.figure);
    this.from = made("span", "", times);
    this.to = made("span", "", times);
    this.at = null;
    this.svg.addEventListener("pointermove", (event) => {
      const box = this.svg.getBoundingClientRect();
      this.at = (event.clientX - box.left) / Math.max(1, box.width);
      this.tell();
    });
    this.svg.addEventListener("pointerleave", () => { this.at = null; this.tell(); });
  }

  draw(panel, points, begin, end, isLive) {
    const lines = panel.lines.map(([name, read]) => ({name, points: points.map((p) => [p.at, read(p)]).filter((p) => p[1] !== undefined)}));
    let low = Infinity, high = -Infinity;
    for (const line of lines) for (const [, y] of line.points) { low = Math.min(low, y); high = Math.max(high, y); }
    const nothing = low > high;
    if (nothing) { low = 0; high = 1; }
    if (panel.fromZero) { low = Math.min(low, 0); high = Math.max(high, 0); }
    if (low === high) high = low + (Math.abs(low) || 1);
    Object.assign(this, {panel, lines, begin, end});
    const x = (at) => (WIDTH * (at - begin)) / Math.max(end - begin, 1e-3);
    const y = (value) => HEIGHT - PAD - (HEIGHT - 2 * PAD) * ((value - low) / (high - low));
    put(this.title, panel.title);
    while (this.paths.length < lines.length) {
      const place = this.paths.length % 3;
      this.paths.push(drawn("path", `line s${place}`, this.svg));
      this.keys.push(made("span", `key s${place}`, this.caption));
    }
    this.paths.forEach((path, place) => path.setAttribute("d", place < lines.length ? pathOf(lines[place].points, x, y) : ""));
    put(this.high, nothing ? "" : number(high));
    put(this.low, nothing ? "" : number(low));
    put(this.from, isLive ? `${span(end - begin)} ago` : clock(begin));
    put(this.to, isLive ? "now" : clock(end));
    const told = lines.map((line) => `${line.name} ${line.points.length ? number(line.points.at(-1)[1]) : "not known"}`);
    const label = shown(`${panel.title}: ${told.join(", ")}; between ${number(low)} and ${number(high)} in ${span(end - begin)}`);
    this.svg.setAttribute("aria-label", label);
    this.tell();
  }

  // The values at the pointer, or the last ones.
  tell() {
    if (!this.lines) return;
    const at = this.at === null ? null : this.begin + this.at * (this.end - this.begin);
    this.pointer.setAttribute("d", at === null ? "" : `M${WIDTH * this.at} 0V${HEIGHT}`);
    this.keys.forEach((key, place) => {
      const line = this.lines[place];
      const point = line && (at === null ? line.points.at(-1) : nearest(line.points, at));
      put(key, line ? `${this.lines.length > 1 ? line.name + " " : ""}${number(point?.[1])}` : "");
    });
    if (at !== null) put(this.to, clock(at));
  }
}

function nearest(points, at) {
  let best;
  for (const point of points) if (best === undefined || Math.abs(point[0] - at) < Math.abs(best[0] - at)) best = point;
  return best;
}

// A line; where nothing came for long, it is broken: nobody knows what was there.
function pathOf(points, x, y) {
  const steps = points.slice(1).map((point, place) => point[0] - points[place][0]).sort((a, b) => a - b);
  const gap = Math.max(15, 5 * (steps[steps.length >> 1] || 0));
  let path = "", before = -Infinity;
  for (const [at, value] of points) {
    const place = `${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    path += at - before > gap ? `M${place}h0.1` : `L${place}`;
    before = at;
  }
  return path;
}

// -- cards -----------------------------------------------------------------------------------------------------------

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const job = jobs.get(entry.target.dataset.folder);
    if (job) { job.isSeen = entry.isIntersecting; if (job.isSeen) drawCharts(job); }
  }
}, {rootMargin: "200px"});

function newCard(job) {
  const card = made("article", "job", null);
  card.dataset.folder = job.folder;
  const head = made("h2", "", card);
  job.parts = {
    badge: made("span", "outcome", head), name: made("span", "name", head), state: made("span", "state", head),
    asks: made("p", "asks", card), reason: made("p", "reason soft", card), facts: made("p", "facts", card),
  };
  const body = made("div", "body", card);
  job.parts.charts = made("div", "charts", body);
  job.parts.found = made("div", "found", body);
  job.parts.alarms = made("details", "alarms", card);
  job.parts.alarms.hidden = true;
  job.parts.alarmHead = made("summary", "", job.parts.alarms);
  job.parts.alarmList = made("ul", "", job.parts.alarms);
  job.charts = [];
  job.card = card;
  watcher.observe(card);
}

function showJob(job) {
  const parts = job.parts;
  job.card.classList.remove("FAILS", "UNDECIDED", "HOLDS");
  if (job.verdict) job.card.classList.add(job.verdict);
  put(parts.badge, job.verdict || "");
  put(parts.name, job.name);
  put(parts.asks, `${job.kind}: ${job.asks}`);
  put(parts.reason, job.verdict === "UNDECIDED" ? job.reason : "");
  showAlarms(job);
  showFinding(job);
  showTimes(job);
}

// What changes though nothing came.
function showTimes(job) {
  const state = stateOf(job);
  put(job.parts.state, state.told);
  job.parts.state.className = `state ${state.name}`;
  put(job.parts.facts, factsOf(job));
}

function showAlarms(job) {
  const counted = Object.entries(job.counted), parts = job.parts;
  parts.alarms.hidden = !counted.length;
  const head = counted.map(([finding, count]) => `${number(count)} × ${finding}`).join(", ");
  put(parts.alarmHead, counted.length ? `alarms: ${head}` : "");
  const told = JSON.stringify(job.alarms);
  if (told === job.alarmsShown) return;
  job.alarmsShown = told;
  parts.alarmList.replaceChildren();
  for (const [at, finding, text] of [...job.alarms].reverse()) {
    const line = made("li", "", parts.alarmList, `${clock(at)} `);
    made("span", "finding", line, finding);
    line.append(shown(` ${text}`));
  }
}

function showFinding(job) {
  const found = job.finding, told = JSON.stringify(found) + job.id;
  if (told === job.foundShown) return;
  const isOpen = job.parts.found.querySelector("details")?.open || false;
  job.foundShown = told;
  job.parts.found.replaceChildren();
  job.card.classList.toggle("wide", Boolean(found?.picture));
  if (!found) return;
  const line = made("p", "explanation", job.parts.found);
  made("span", "finding", line, found.finding);
  line.append(shown(` at ${clock(found.at)}: ${found.explanation}`));
  if (found.means) made("p", "soft", job.parts.found, found.means);
  if (found.picture) {
    const picture = made("img", "", job.parts.found);
    picture.alt = shown(`picture of the finding ${found.finding}`);
    picture.loading = "lazy";
    picture.addEventListener("error", () => picture.remove());
    picture.src = `/picture/${job.id}.svg?${encodeURIComponent(found.at)}`;
  }
  if (!found.story) return;
  const more = made("details", "", job.parts.found);
  more.open = isOpen;
  made("summary", "", more, "the finding in full");
  made("pre", "", more, found.story);
}

function drawCharts(job) {
  if (!job.points.length) return;
  const state = stateOf(job).name, isLive = state === "running" || state === "silent";
  const end = isLive ? serverNow : job.points.at(-1).at;
  const wanted = Number(byId("window").value);
  const begin = wanted ? end - wanted : Math.min(job.points[0].at, end - 1);
  const points = wanted ? job.points.filter((point) => point.at >= begin) : job.points;
  const panels = panelsOf(job);
  while (job.charts.length < panels.length) job.charts.push(new Chart(job.parts.charts));
  job.charts.forEach((chart, place) => {
    chart.figure.hidden = place >= panels.length;
    if (place < panels.length) chart.draw(panels[place], points, begin, end, isLive);
  });
}

// -- all jobs --------------------------------------------------------------------------------------------------------

function isWanted(job) {
  const which = byId("which").value, state = stateOf(job).name;
  if (which === "failing" && rankOf(job) !== 0) return false;
  if (which === "running" && state !== "running" && state !== "silent") return false;
  if (which === "stopped" && state !== "stopped" && state !== "failed") return false;
  const text = [job.name, job.kind, job.asks, job.verdict, job.finding?.finding, job.ended].join(" ").toLowerCase();
  return byId("search").value.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function arrange() {
  const order = [...jobs.values()].sort((a, b) => rankOf(a) - rankOf(b) || (a.name < b.name ? -1 : a.name > b.name ? 1 : a.folder < b.folder ? -1 : 1));
  const main = byId("jobs");
  order.forEach((job, place) => {
    if (main.children[place] !== job.card) main.insertBefore(job.card, main.children[place] || null);
  });
  let seen = 0;
  for (const job of order) {
    const wanted = isWanted(job);
    job.card.classList.toggle("hidden", !wanted);
    seen += wanted;
  }
  put(byId("shown"), seen < order.length ? `${seen} of ${order.length} shown` : "");
}

function summary() {
  const counts = {FAILS: 0, UNDECIDED: 0, HOLDS: 0, failed: 0, silent: 0};
  for (const job of jobs.values()) {
    if (job.verdict) counts[job.verdict] += 1;
    const state = stateOf(job).name;
    if (state in counts) counts[state] += 1;
  }
  const told = Object.entries(counts).filter(([, count]) => count).map(([name, count]) => `${count} ${name}`);
  const worst = counts.FAILS || counts.failed ? "FAILS" : counts.UNDECIDED || counts.silent ? "UNDECIDED" : counts.HOLDS ? "HOLDS" : "NONE";
  const title = gone ? "no answer · streamtight live" : `${told[0] ? told[0] + " · " : ""}streamtight live`;
  if (document.title !== title) document.title = title;
  const icon = `/icon/${gone ? "GONE" : worst}.svg`;
  if (byId("icon").getAttribute("href") !== icon) byId("icon").setAttribute("href", icon);
  put(byId("counted"), `${jobs.size} ${jobs.size === 1 ? "job" : "jobs"}${told.length ? ": " + told.join(", ") : ""}`);
}

function take(state) {
  serverNow = state.now;
  next = state.next;
  const news = [];
  for (const told of state.jobs) {
    const before = jobs.get(told.folder);
    const job = before || {folder: told.folder, points: []};
    const points = state.fresh ? told.points : job.points.concat(told.points);
    if (before && told.finding && told.finding.at !== before.finding?.at) news.push(`${told.name}: ${told.finding.finding}`);
    else if (before && told.verdict !== before.verdict && told.verdict) news.push(`${told.name}: ${told.verdict}`);
    Object.assign(job, told, {points: points.slice(-MOST_POINTS)});
    if (!before) {
      newCard(job);
      if (!isFirst) job.card.classList.add("new");
      jobs.set(job.folder, job);
    }
    showJob(job);
  }
  if (state.ids) {
    const ids = new Set(state.ids);
    for (const [folder, job] of jobs) {
      if (!ids.has(job.id)) { watcher.unobserve(job.card); job.card.remove(); jobs.delete(folder); }
    }
  }
  put(byId("empty"), jobs.size ? "" : `Nothing is watched on ${state.board} yet. A job is shown here when it is started with board="${state.board}", or with STREAMTIGHT_BOARD set to that folder.`);
  const notes = JSON.stringify(state.notes);
  if (byId("notes").dataset.told !== notes) {
    byId("notes").dataset.told = notes;
    byId("notes").replaceChildren();
    for (const note of state.notes) made("li", "", byId("notes"), note);
  }
  put(byId("about"), `streamtight ${state.version}, board ${state.board}`);
  if (news.length && !isFirst) byId("news").textContent = shown(news.slice(0, 5).join("; "));
  isFirst = false;
}

function refresh() {
  for (const job of jobs.values()) {
    showTimes(job);
    if (job.isSeen) drawCharts(job);
  }
  arrange();
  summary();
}

function showGone(why) {
  if (why !== gone) {
    gone = why;
    put(byId("gone"), why);
    document.body.classList.toggle("is-gone", Boolean(why));
    if (!why) byId("news").textContent = "the server is back";
  }
}

// -- asking ----------------------------------------------------------------------------------------------------------

async function ask() {
  clearTimeout(timer);
  if (asking || document.hidden) return;
  asking = true;
  const stop = new AbortController();
  const limit = setTimeout(() => stop.abort(), PATIENCE);
  let pause = EVERY;
  try {
    const answer = await fetch(`/state.json?since=${encodeURIComponent(next)}`, {cache: "no-store", signal: stop.signal});
    if (!answer.ok) throw new Error(answer.status === 401 ? "token" : `it answered ${answer.status}`);
    take(await answer.json());
    showGone("");
  } catch (error) {
    pause = AGAIN;
    const from = serverNow ? ` What is shown is from ${clock(serverNow)}.` : "";
    if (error.message === "token") showGone(`The server has another token now: open the address that it printed.${from}`);
    else showGone(`The server does not answer: is "streamtight watch --serve" still running? This page goes on as soon as it is.${from}`);
  } finally {
    clearTimeout(limit);
    asking = false;
  }
  refresh();
  timer = setTimeout(ask, pause);
}

function remember(name, value) {
  try { localStorage.setItem(`streamtight ${name}`, value); } catch { /* a browser that keeps nothing */ }
}

function remembered(name) {
  try { return localStorage.getItem(`streamtight ${name}`); } catch { return null; }
}

const theme = remembered("theme");
if (theme) document.documentElement.dataset.theme = theme;
byId("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  remember("theme", root.dataset.theme);
});
for (const id of ["which", "window"]) {
  const value = remembered(id);
  if (value && [...byId(id).options].some((option) => option.value === value)) byId(id).value = value;
  byId(id).addEventListener("change", () => { remember(id, byId(id).value); refresh(); });
}
byId("search").addEventListener("input", arrange);
document.addEventListener("visibilitychange", ask);
ask();
