"""The one style sheet of our pages and what their scripts share; both are pinned by digest in a content policy."""

from __future__ import annotations

import json
from collections.abc import Sequence

STYLE = """
:root{color-scheme:light dark;--ink:#1c2128;--soft:#57606a;--page:#fff;--box:#f6f8fa;--line:#d0d7de;--link:#0550ae;
--pass:#116329;--fail:#a40e26;--observed:#6639ba;--open:#57606a;--warn:#7d4e00;--passb:#e6f6ea;--failb:#ffebe9;
--warnb:#fff4d6}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9da7b3;--page:#0d1117;--box:#161b22;--line:#3a424c;
--link:#79b8ff;--pass:#5bd174;--fail:#ff8f87;--observed:#c9a6ff;--open:#9da7b3;--warn:#e3b341;--passb:#10261a;
--failb:#33161a;--warnb:#2d2408}}*{box-sizing:border-box}html{scroll-padding-top:1rem}
body{margin:0 auto;max-width:78rem;padding:1.5rem clamp(.75rem,3vw,2.5rem) 4rem;background:var(--page);
color:var(--ink);font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;
overflow-wrap:anywhere}a{color:var(--link)}
a:focus-visible,summary:focus-visible,.wide:focus-visible,input:focus-visible,select:focus-visible,
button:focus-visible{outline:3px solid var(--link);outline-offset:2px}
h1{font-size:1.9rem;line-height:1.2;margin:.2rem 0 .4rem}
h2{font-size:1.35rem;margin:3rem 0 .6rem;padding-top:.8rem;border-top:2px solid var(--line)}
h3{font-size:1.08rem;margin:1.8rem 0 .4rem}h4{font-size:1rem;margin:0 0 .3rem}p{margin:.4rem 0;max-width:48rem}
.soft,caption,.sub{color:var(--soft)}.sub{font-size:.86rem}
code,pre,td bdi,th bdi{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
font-size:.86rem;unicode-bidi:isolate}
pre{margin:.4rem 0 0;padding:.5rem .7rem;background:var(--box);border:1px solid var(--line);border-radius:6px;
white-space:pre-wrap}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;list-style:none;margin:1rem 0 0;padding:0;font-size:.92rem}
.skip{position:absolute;left:-99rem}.skip:focus{position:static}
.docs{list-style:none;margin:1.2rem 0;padding:0;display:grid;gap:.45rem}
.docs li{display:grid;grid-template-columns:11.5rem 1fr;gap:.2rem 1rem;align-items:baseline;padding:.55rem .8rem;
background:var(--box);border-left:5px solid var(--open);border-radius:4px}
.docs li.pass{border-color:var(--pass);background:var(--passb)}
.docs li.fail{border-color:var(--fail);background:var(--failb)}
.docs li.warn{border-color:var(--warn);background:var(--warnb)}.v{white-space:nowrap;font-weight:600}
.v.pass{color:var(--pass)}.v.fail,.v.error{color:var(--fail)}.v.observed{color:var(--observed)}
.v.open{color:var(--open)}.v.warn{color:var(--warn)}.wide{overflow-x:auto;margin:.5rem 0 0}
table{border-collapse:collapse;font-size:.9rem;min-width:min(100%,34rem)}
caption{text-align:left;padding:.2rem 0 .4rem;font-size:.88rem}
th,td{text-align:left;vertical-align:top;padding:.32rem .8rem .32rem .4rem;border-bottom:1px solid var(--line)}
thead th{border-bottom:2px solid var(--line);white-space:nowrap}tbody th{font-weight:600}
td.n{text-align:right;white-space:nowrap}td,tbody th{overflow-wrap:break-word;min-width:4rem}
.matrix table{font-size:.82rem;line-height:1.3}.matrix td{white-space:nowrap;padding-right:.5rem}
.matrix tbody th{position:sticky;left:0;background:var(--page);
min-width:11rem;overflow-wrap:normal}.rules td:nth-child(2){min-width:25rem}
.rules tbody th{min-width:15rem}tbody th .sub{font-weight:400}.rules .where li{white-space:nowrap}
.where{list-style:none;margin:0;padding:0}.where li{margin:0 0 .1rem}
.entry{border:1px solid var(--line);border-left:4px solid var(--fail);border-radius:6px;padding:.5rem .9rem;
margin:.5rem 0}.entry>summary{cursor:pointer;font-weight:600}.entry>summary .sub{font-weight:400}
.steps{margin:.2rem 0;padding-left:1.4rem}.steps.one{list-style:none;padding:0}
.case{border-bottom:1px solid var(--line);padding:.15rem 0}.case>summary{cursor:pointer;padding:.3rem 0}
.case[open]{padding-bottom:1rem}.case>:not(summary){margin-left:1.1rem}
.case,.case [id],[id^=cases-of]{scroll-margin-top:9rem}
.entry td:first-child{min-width:15rem}.entry td:nth-child(2),.entry td:nth-child(3){min-width:9rem}
.entry td:nth-child(5){min-width:12rem}.case td:nth-child(-n+3){min-width:9rem}.open td:last-child{min-width:12rem}
.case{content-visibility:auto;contain-intrinsic-size:auto 2.2rem}.names{columns:17rem;font-size:.86rem;margin:.3rem 0}
.abreast tbody th{min-width:15rem}.abreast thead th{white-space:normal;vertical-align:bottom;min-width:5.5rem}
.abreast thead th bdi{overflow-wrap:anywhere}
.pairs{display:block}.pairs>div{display:grid;grid-template-columns:minmax(0,2fr) minmax(0,3fr);gap:.2rem 1.2rem;
padding:.35rem 0;border-bottom:1px solid var(--line);font-size:.9rem;content-visibility:auto;
contain-intrinsic-size:auto 3.4rem}.pairs dt{color:var(--ink);font-weight:600}.pairs dt .sub{font-weight:400}
.pairs .where li{padding-left:1rem;text-indent:-1rem}
.changed tbody th{min-width:12rem}
.kinds{margin:.3rem 0 0;padding-left:1.2rem}
details summary{cursor:pointer}figure{margin:.7rem 0;overflow-x:auto}.pic{display:block;max-width:100%;height:auto}
.pic rect{fill:var(--box);stroke:var(--soft)}.pic text{fill:var(--ink);text-anchor:middle;
font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.pic .name,.pic .what{fill:var(--soft);font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
.pic .name{text-anchor:start}.pic .what{font-size:11px}.pic path{stroke:var(--link);stroke-width:1.5;fill:none}
.pic .copied{stroke:var(--link);stroke-width:2}.pic .words{fill:none;stroke:none}
.pic .inferred{stroke:var(--observed);stroke-width:2;stroke-dasharray:4 3}
.pic .illegal,.pic .differs{stroke:var(--fail);stroke-width:2;fill:var(--failb)}
:target{outline:3px solid var(--link);outline-offset:3px;border-radius:3px}
h2:target,h3:target{outline:0}.filters~section [id]{scroll-margin-top:4.5rem}
.filters{position:sticky;top:0;z-index:1;display:flex;flex-wrap:wrap;gap:.5rem .8rem;align-items:end;
background:var(--page);padding:.6rem 0;border-bottom:1px solid var(--line)}.filters[hidden]{display:none}
.filters label{display:grid;font-size:.8rem;color:var(--soft)}
.filters input,.filters select,.filters button{font:inherit;font-size:.9rem;color:var(--ink);background:var(--box);
border:1px solid #8c959f;border-radius:5px;padding:.25rem .45rem;max-width:14rem;height:2.1rem}
.filters output{font-size:.86rem;color:var(--soft);padding-bottom:.3rem}[hidden]{display:none!important}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:.4rem 0}dt{color:var(--soft)}
dd{margin:0;min-width:0}
@media (max-width:40rem){.pairs>div{grid-template-columns:1fr;contain-intrinsic-size:auto 7rem}
.abreast tbody th{min-width:9rem;max-width:9rem}
.docs li{grid-template-columns:1fr}dl{grid-template-columns:1fr}dd{margin-bottom:.4rem}
.filters{position:static}h1{font-size:1.5rem}th,td{padding-right:.5rem}
.scope table,.scope tbody,.scope tr,.scope td,.scope th,.stack table,.stack tbody,.stack tr,.stack td,
.stack th{display:block;border:0;padding:0 0 .1rem}.scope thead,.stack thead{display:none}
.scope tr,.stack tr{padding:.5rem 0;border-bottom:1px solid var(--line)}.scope table,.stack table{min-width:0}
.scope caption,.stack caption{display:block}.scope td:empty{display:none}.rules .where li{white-space:normal}
.rules td:nth-child(2),.rules tbody th,.changed tbody th{min-width:0}.case>:not(summary){margin-left:0}
.stack td.n{text-align:left}.kinds-of td:nth-child(2)::after{content:" rows"}
.kinds-of td:nth-child(3)::after{content:" cases"}
.pinned td:nth-child(3)::before{content:"old "}.pinned td:nth-child(4)::before{content:"new "}
.changed td:nth-child(6)::before{content:"why: "}
.entry .stack td:nth-child(2)::before,.case .stack td:nth-child(2)::before{content:"want "}
.entry .stack td:nth-child(3)::before,.case .stack td:nth-child(3)::before{content:"got "}
.stack td::before,.stack td::after{color:var(--soft);font-size:.86rem}
.stack td:empty{display:none!important}}
@page{margin:14mm 12mm}@page across{size:landscape}
@media print{details::details-content{content-visibility:visible;display:block;block-size:auto}
.case,.pairs>div{content-visibility:visible}:root{color-scheme:light;font-size:9pt}body{max-width:none;padding:0}
nav,.filters,.skip{display:none!important}h2{break-after:avoid}h3,h4,caption{break-after:avoid}
.entry,.case,tr,.docs li,.pairs>div{break-inside:avoid}#rules,#failures,#matrix,#cases,#environment{break-before:page}
.pic{max-height:9cm;width:auto}
.wide{overflow:visible}.across{page:across}.across table{width:100%}
.matrix table{font-size:7pt}.matrix .sub,.matrix bdi{font-size:inherit!important}.abreast+.abreast{break-before:page}
a{color:inherit;text-decoration:none}}
"""


def script(names: Sequence[str], home: str, own: str) -> str:
    """A page's script: filters and targets in the fragment; `own` says what it is to `apply` filters."""
    head = f"var names = {json.dumps(list(names))}, home = {json.dumps('#' + home)};"
    return f"(function () {{\n  'use strict';\n  {head}{_FILTERS}{own}{_WIRED}}})();\n"


_FILTERS = """
  var form = document.getElementById('filters'), output = form.querySelector('output'), timer = 0;
  function wanted() {
    var found = {};
    names.forEach(function (name) { if (form.elements[name].value) found[name] = form.elements[name].value; });
    return found;
  }
  function keep() {
    var want = wanted(), parts = Object.keys(want).map(function (name) {
      return name + '=' + encodeURIComponent(want[name]);
    });
    history.replaceState(null, '', parts.length ? '#filter:' + parts.join('&') : home);
  }
  function decoded(text) { try { return decodeURIComponent(text); } catch (error) { return text; } }
  function filtered() {
    if (location.hash.indexOf('#filter:') !== 0) return false;
    form.reset();
    location.hash.slice(8).split('&').forEach(function (part) {
      var at = part.indexOf('='), name = part.slice(0, at);
      if (names.indexOf(name) >= 0) form.elements[name].value = decoded(part.slice(at + 1));
    });
    apply();
    seen(form);
    return true;
  }
  function seen(target) {
    target.scrollIntoView();
    requestAnimationFrame(function () { requestAnimationFrame(function () { target.scrollIntoView(); }); });
  }
  function go() {
    if (filtered()) return;
    var target = location.hash.length > 1 && document.getElementById(decoded(location.hash.slice(1)));
    if (!target) return;
    if (target.closest('[hidden]')) { form.reset(); apply(); }
    for (var at = target; at; at = at.parentElement) if (at.tagName === 'DETAILS') at.open = true;
    seen(target);
  }
  function changed() { apply(); keep(); }
"""
_WIRED = """
  form.addEventListener('submit', function (event) { event.preventDefault(); });
  form.addEventListener('reset', function () { setTimeout(changed, 0); });
  form.addEventListener('change', changed);
  form.elements.text.addEventListener('input', function () { clearTimeout(timer); timer = setTimeout(changed, 60); });
  window.addEventListener('hashchange', go);
  form.hidden = false;
  apply();
  go();
"""

SCRIPT = script(
    ("verdict", "diagnosis", "rule", "operation", "type", "document", "text"),
    "cases",
    """
  var facets = JSON.parse(document.getElementById('facets').textContent).map(function (each) {
    return {verdict: each[0], operation: each[1], type: each[2], document: each[3], diagnosis: each[4], shown: true};
  });
  var blocks = Array.prototype.slice.call(document.querySelectorAll('[data-block]')).map(function (element) {
    return {element: element, rule: element.getAttribute('data-r'), text: null,
      rows: Array.prototype.slice.call(element.querySelectorAll('tr[data-f]')).map(function (row) {
        return {element: row, facet: facets[Number(row.getAttribute('data-f'))]};
      })};
  });
  var idle = Array.prototype.slice.call(document.querySelectorAll('[data-idle]'));
  var heads = Array.prototype.slice.call(document.querySelectorAll('[data-group]'));
  var total = blocks.filter(isCase).length;
  function isCase(block) { return block.element.id !== ''; }
  function apply() {
    var want = wanted(), text = (want.text || '').toLowerCase(), cases = 0;
    facets.forEach(function (facet) {
      facet.shown = ['verdict', 'diagnosis', 'operation', 'type', 'document'].every(function (name) {
        return !want[name] || facet[name].indexOf(want[name]) >= 0;
      });
    });
    blocks.forEach(function (block) {
      if (text && block.text === null) block.text = block.element.textContent.toLowerCase();
      var fits = (!want.rule || want.rule === block.rule) && (!text || block.text.indexOf(text) >= 0), some = false;
      block.rows.forEach(function (row) {
        var shown = row.facet.shown;
        if (row.element.hidden === shown) row.element.hidden = !shown;
        some = some || shown;
      });
      var shown = fits && some;
      if (block.element.hidden === shown) block.element.hidden = !shown;
      if (shown && isCase(block)) cases += 1;
    });
    var any = Object.keys(want).length > 0;
    idle.forEach(function (each) { each.hidden = any; });
    heads.forEach(function (head) { head.hidden = any && !head.querySelector('[data-block]:not([hidden])'); });
    output.textContent = cases + ' of ' + total + ' cases shown';
  }
  window.addEventListener('beforeprint', function () {
    document.querySelectorAll('details:not([open])').forEach(function (each) {
      each.open = true;
      each.setAttribute('data-closed', '');
    });
  });
  window.addEventListener('afterprint', function () {
    document.querySelectorAll('[data-closed]').forEach(function (each) {
      each.open = false;
      each.removeAttribute('data-closed');
    });
  });
""",
)
