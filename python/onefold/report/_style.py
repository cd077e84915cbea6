"""The style sheet of a page: light, dark, narrow screens and paper."""

__all__ = ["STYLE"]

STYLE = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --panel: #f5f6f8; --ink: #1a1d21; --soft: #50565e; --rule: #d5d9de;
  --accent: #0b5cad; --accent-rgb: 11 92 173; --second: #a34a00;
  --ok: #14602f; --ok-page: #e3f3e8; --look: #7a4900; --look-page: #fff1d6;
  --problem: #9b1025; --problem-page: #fde7ea; --none: #50565e; --none-page: #eceef1;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171c; --panel: #1d2127; --ink: #e7e9ec; --soft: #b0b6bf; --rule: #3a4049;
    --accent: #7db8ff; --accent-rgb: 90 160 240; --second: #ffb066;
    --ok: #8fdda8; --ok-page: #14321f; --look: #ffd28a; --look-page: #3a2a0a;
    --problem: #ffb0b8; --problem-page: #441219; --none: #b0b6bf; --none-page: #282d35;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 1.5rem 1.25rem 3rem; max-width: 66rem; background: var(--page);
  color: var(--ink); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .7rem; padding-bottom: .25rem;
     border-bottom: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 0 0 .4rem; overflow-wrap: anywhere; }
p { margin: .4rem 0; max-width: 46rem; }
a { color: var(--accent); }
.soft, figcaption, .caption { color: var(--soft); font-size: .9rem; }
.scores { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.2rem 0 .8rem; }
.score { background: var(--panel); border-radius: .5rem; padding: .8rem 1.1rem; }
.score .label { color: var(--soft); font-size: .9rem; overflow-wrap: anywhere; }
.score .value { font-size: 1.9rem; font-weight: 650; line-height: 1.25;
                font-variant-numeric: tabular-nums; }
.verdict { display: inline-block; white-space: nowrap; border-radius: .3rem; padding: .05rem .5rem;
           font-size: .85rem; font-weight: 650; }
.verdict.ok { color: var(--ok); background: var(--ok-page); }
.verdict.look { color: var(--look); background: var(--look-page); }
.verdict.problem { color: var(--problem); background: var(--problem-page); }
.verdict.none { color: var(--none); background: var(--none-page); }
.summary { display: flex; flex-wrap: wrap; gap: .5rem; margin: .6rem 0; }
ol.checks { list-style: none; margin: 0; padding: 0; }
ol.checks > li { display: grid; grid-template-columns: 8.2rem 1fr; gap: .2rem .8rem;
                 padding: .45rem 0; border-bottom: 1px solid var(--rule); break-inside: avoid; }
ol.checks > li:last-child { border-bottom: 0; }
ol.checks p { margin: .1rem 0; overflow-wrap: anywhere; max-width: 52rem; }
details { margin: .2rem 0; }
summary { cursor: pointer; color: var(--accent); font-size: .9rem; padding: .2rem 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr));
           gap: 1.6rem; align-items: start; }
figure { margin: 0; break-inside: avoid; }
svg { display: block; width: 100%; height: auto; max-width: 34rem; color: var(--ink); }
svg text { fill: currentColor; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .7rem; border-bottom: 1px solid var(--rule);
         vertical-align: top; }
thead th { color: var(--soft); font-weight: 600; }
tbody th { font-weight: 600; }
td.number { text-align: right; white-space: nowrap; }
td.text { overflow-wrap: anywhere; min-width: 10rem; }
td.shade { background: rgb(var(--accent-rgb) / calc(var(--share) * .42)); text-align: right; }
pre { background: var(--panel); border-radius: .5rem; padding: .9rem 1rem; overflow-x: auto;
      font: .9rem/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
ul.notes { padding-left: 1.2rem; margin: .4rem 0; overflow-wrap: anywhere; }
footer { margin-top: 2.5rem; color: var(--soft); font-size: .85rem; }
@media (max-width: 36rem) {
  body { padding: 1rem .9rem 2rem; }
  h1 { font-size: 1.4rem; }
  ol.checks > li { grid-template-columns: 1fr; }
  th, td { padding: .3rem .45rem; }
}
@media print {
  :root {
    color-scheme: light;
    --page: #fff; --panel: #f5f6f8; --ink: #000; --soft: #444; --rule: #bbb;
    --accent: #0b5cad; --accent-rgb: 11 92 173; --second: #a34a00;
    --ok: #14602f; --ok-page: #e3f3e8; --look: #7a4900; --look-page: #fff1d6;
    --problem: #9b1025; --problem-page: #fde7ea; --none: #444; --none-page: #eceef1;
  }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  html { font-size: 9.5pt; }
  body { max-width: none; padding: 0; }
  .about { display: none; }
  .figures { grid-template-columns: 1fr 1fr; }
  h2 { break-after: avoid; }
  pre { white-space: pre-wrap; break-inside: avoid; }
  footer { margin-top: .5rem; }
  details::details-content { content-visibility: visible; }
  @supports selector(details::details-content) { summary { display: none; } }
}
"""
