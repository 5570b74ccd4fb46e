/* reshape-conformance: a part of the pages of this site */
'use strict';

/** Hide an element or show it, unless it is so already: each change costs the browser time. */
function hide(element, hidden) { if (element.hidden !== hidden) element.hidden = hidden; }

/** The groups of a page, each with the blocks in it that `make` makes of its elements. */
function groupBlocks(selector, make) {
  return Array.from(document.querySelectorAll('[data-group]'), function (group) {
    return {element: group, blocks: Array.from(group.querySelectorAll(selector), make)};
  });
}

function blocksOf(groups) { return [].concat.apply([], groups.map(function (group) { return group.blocks; })); }

/**
 * Show the blocks with `shown`. A group without any is hidden as a whole, and its blocks are left as they are: a browser
 * lays out and styles what is far off the screen only if it must.
 *
 * @param {boolean} any true if a filter is set; without one, groups without blocks are shown too
 * @param {function(Object)} inside called with each block that is shown
 */
function showGroups(groups, any, inside) {
  groups.forEach(function (group) {
    var some = group.blocks.some(function (block) { return block.shown; });
    hide(group.element, any && !some);
    if (some) group.blocks.forEach(function (block) {
      hide(block.element, !block.shown);
      if (block.shown) inside(block);
    });
  });
}

/** Ask whether a text has what is searched for, or a name has each word of it, as on the landing page. */
function isFound(search, text, name) {
  search = search.toLowerCase();
  return text.indexOf(search) >= 0 || search.split(/[\s-]+/).every(function (word) { return name.indexOf(word) >= 0; });
}

/** Call a function with each value while the browser has nothing else to do. */
function whenIdle(values, call) {
  var at = 0, wait = window.requestIdleCallback || function (task) { return setTimeout(task, 1); };
  function some() {
    for (var end = at + 50; at < end && at < values.length; at += 1) call(values[at]);
    if (at < values.length) wait(some);
  }
  wait(some);
}

/**
 * Wire the form of a page's filters. The fragment of the address holds the filters, so that a view can be sent.
 * A fragment that names an element shows the element, also if a filter hides it.
 *
 * @param {string} home the fragment without any filter
 * @param {function(Object): string} show hides what does not match, and returns the text beside the form
 */
function wireFilters(home, show) {
  var form = document.getElementById('filters'), output = form.querySelector('output'), timer = 0;
  var names = Array.from(form.elements, function (element) { return element.name; }).filter(Boolean);

  function chosen() {
    var values = {};
    names.forEach(function (name) { if (form.elements[name].value) values[name] = form.elements[name].value; });
    return values;
  }
  function apply() { output.textContent = show(chosen()); }
  function keep() {
    var values = chosen(), parts = Object.keys(values).map(function (name) {
      return name + '=' + encodeURIComponent(values[name]);
    });
    history.replaceState(null, '', parts.length ? '#filter:' + parts.join('&') : home);
  }
  function decode(text) { try { return decodeURIComponent(text); } catch (error) { return text; } }
  function readFragment() {
    if (location.hash.indexOf('#filter:') !== 0) return false;
    form.reset();
    location.hash.slice(8).split('&').forEach(function (part) {
      var at = part.indexOf('='), name = part.slice(0, at);
      if (names.indexOf(name) >= 0) form.elements[name].value = decode(part.slice(at + 1));
    });
    apply();
    scrollTo(form);
    return true;
  }
  /* What comes into view may change its size, and move the target: go on until it stays where it is. */
  function scrollTo(target) {
    var place = null, still = 0, frames = 60;
    (function settle() {
      var top = target.getBoundingClientRect().top;
      still = place !== null && Math.abs(top - place) < 1 ? still + 1 : 0;
      if (still < 3) target.scrollIntoView();
      place = target.getBoundingClientRect().top;
      if (still < 3 && frames--) requestAnimationFrame(settle);
    })();
  }
  function follow() {
    if (readFragment()) return;
    var target = location.hash.length > 1 && document.getElementById(decode(location.hash.slice(1)));
    if (!target) return;
    if (target.closest('[hidden]')) { form.reset(); apply(); }
    for (var at = target; at; at = at.parentElement) if (at.tagName === 'DETAILS') at.open = true;
    scrollTo(target);
  }
  function change() { apply(); keep(); }

  form.addEventListener('submit', function (event) { event.preventDefault(); });
  form.addEventListener('reset', function () { setTimeout(change, 0); });
  Array.from(form.elements).forEach(function (element) { element.addEventListener('change', change); });
  form.elements.text.addEventListener('input', function () {
    apply();
    clearTimeout(timer);
    timer = setTimeout(keep, 300);  // it takes a browser longer than the rest, so not with each keystroke
  });
  window.addEventListener('hashchange', follow);
  form.hidden = false;
  apply();
  follow();
}
