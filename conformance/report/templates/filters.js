'use strict';

/**
 * Wire the form of a page's filters. The filters stand in the fragment of the address, so that a view can be sent.
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
  function scrollTo(target) {
    target.scrollIntoView();
    requestAnimationFrame(function () { requestAnimationFrame(function () { target.scrollIntoView(); }); });
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
  form.elements.text.addEventListener('input', function () { clearTimeout(timer); timer = setTimeout(change, 60); });
  window.addEventListener('hashchange', follow);
  form.hidden = false;
  apply();
  follow();
}
