/* The filters of report.html, buttons that copy a command, and details that are open while the page is printed. */
(function () {
  var facets = JSON.parse(document.getElementById('facets').textContent).map(function (each) {
    return {verdict: each[0], operation: each[1], type: each[2], document: each[3], diagnosis: each[4], shown: true};
  });
  var blocks = Array.from(document.querySelectorAll('[data-block]'), function (element) {
    return {element: element, rule: element.getAttribute('data-r'), words: null,
      group: element.closest('[data-group]'), rows: Array.from(element.querySelectorAll('tr[data-f]'), function (row) {
        return {element: row, facet: facets[Number(row.getAttribute('data-f'))]};
      })};
  });
  var idle = document.querySelectorAll('[data-idle]'), groups = document.querySelectorAll('[data-group]');
  var total = blocks.filter(isCase).length;

  function isCase(block) { return block.element.classList.contains('case'); }

  /* The id, the title and the rule, which are what a reader searches for. */
  function wordsOf(block) {
    var name = block.element.querySelector(isCase(block) ? 'summary .name' : 'summary, th').textContent;
    return [name, name.replace(/-/g, ' '), block.rule].join(' ').toLowerCase();
  }

  function show(want) {
    var text = (want.text || '').toLowerCase(), cases = 0, filled = new Set(), any = Object.keys(want).length > 0;
    facets.forEach(function (facet) {
      facet.shown = ['verdict', 'diagnosis', 'operation', 'type', 'document'].every(function (name) {
        return !want[name] || facet[name].indexOf(want[name]) >= 0;
      });
    });
    blocks.forEach(function (block) {
      if (text && block.words === null) block.words = wordsOf(block);
      var fits = (!want.rule || want.rule === block.rule) && (!text || block.words.indexOf(text) >= 0), some = false;
      if (fits) block.rows.forEach(function (row) {
        var shown = row.facet.shown;
        if (row.element.hidden === shown) row.element.hidden = !shown;
        some = some || shown;
      });
      if (block.element.hidden === some) block.element.hidden = !some;
      if (some) filled.add(block.group);
      if (some && isCase(block)) cases += 1;
    });
    idle.forEach(function (each) { if (each.hidden !== any) each.hidden = any; });
    groups.forEach(function (each) {
      var empty = any && !filled.has(each);
      if (each.hidden !== empty) each.hidden = empty;
    });
    return any ? cases + ' of ' + total + ' cases shown' : '';
  }

  /* ── commands ── */

  function copy(pre, button) {
    function say(word) {
      button.textContent = word;
      setTimeout(function () { button.textContent = 'Copy'; }, 2000);
    }
    function select() {
      getSelection().selectAllChildren(pre);
      say(document.execCommand('copy') ? 'Copied' : 'Selected');
    }
    if (navigator.clipboard) navigator.clipboard.writeText(pre.textContent).then(function () { say('Copied'); }, select);
    else select();
  }
  document.querySelectorAll('pre[data-copy]').forEach(function (pre) {
    var button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy';
    button.textContent = 'Copy';
    button.setAttribute('aria-label', 'Copy: ' + pre.textContent);
    button.addEventListener('click', function () { copy(pre, button); });
    pre.parentNode.insertBefore(button, pre);
  });

  /* ── print ── */

  window.addEventListener('beforeprint', function () {
    var all = document.getElementById('print-all').checked;
    document.querySelectorAll('details:not([open])').forEach(function (each) {
      if (!all && each.closest('.appendix')) return;
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
  wireFilters('#cases', show);
  if (!blocks.length) document.getElementById('filters').hidden = true;
})();
