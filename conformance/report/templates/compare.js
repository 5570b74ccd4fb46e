/* The filters of the page that compares backends. */
(function () {
  var rows = Array.from(document.querySelectorAll('[data-s]'), function (element) {
    return {element: element, rule: element.getAttribute('data-r'), text: null,
      show: element.getAttribute('data-s').split(' ')};
  });

  wireFilters('#rules', function (want) {
    var text = (want.text || '').toLowerCase(), count = 0;
    rows.forEach(function (row) {
      if (text && row.text === null) row.text = row.element.textContent.toLowerCase();
      var shown = (!want.show || row.show.indexOf(want.show) >= 0) && (!want.rule || row.rule === want.rule) &&
        (!text || row.text.indexOf(text) >= 0);
      if (row.element.hidden === shown) row.element.hidden = !shown;
      if (shown) count += 1;
    });
    return count + ' of ' + rows.length + ' lines shown';
  });
})();
