/* The filters of report.html, and all details open while it is printed. */
(function () {
  var facets = JSON.parse(document.getElementById('facets').textContent).map(function (each) {
    return {verdict: each[0], operation: each[1], type: each[2], document: each[3], diagnosis: each[4], shown: true};
  });
  var blocks = Array.from(document.querySelectorAll('[data-block]'), function (element) {
    return {element: element, rule: element.getAttribute('data-r'), text: null,
      rows: Array.from(element.querySelectorAll('tr[data-f]'), function (row) {
        return {element: row, facet: facets[Number(row.getAttribute('data-f'))]};
      })};
  });
  var idle = document.querySelectorAll('[data-idle]'), groups = document.querySelectorAll('[data-group]');
  var total = blocks.filter(isCase).length;

  function isCase(block) { return block.element.classList.contains('case'); }
  function show(want) {
    var text = (want.text || '').toLowerCase(), cases = 0, any = Object.keys(want).length > 0;
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
    idle.forEach(function (each) { each.hidden = any; });
    groups.forEach(function (each) { each.hidden = any && !each.querySelector('[data-block]:not([hidden])'); });
    return cases + ' of ' + total + ' cases shown';
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
  wireFilters('#cases', show);
})();
