/* reshape-conformance: a part of the pages of this site */
/* The filters of the lists that compare backends. */
(function () {
  var groups = groupBlocks('[data-s]', function (element) {
    return {element: element, rule: element.getAttribute('data-r'), text: null,
      show: element.getAttribute('data-s').split(' ')};
  });
  var lines = blocksOf(groups);
  var chosen = chooseBackends(groups);

  function textOf(line) {
    if (line.text === null) line.text = line.element.firstElementChild.textContent.toLowerCase();
    return line.text;
  }
  whenIdle(lines, textOf);

  /* A link to a report leads to the case or the rule of its line there. */
  function leadOn(event) {
    var link = event.target.closest('.where a');
    if (link) link.hash = link.closest('[data-s]').querySelector('dt').id;
  }
  document.addEventListener('pointerover', leadOn);
  document.addEventListener('focusin', leadOn);

  wireFilters('#' + document.querySelector('#filters~section h2').id, function (want) {
    var count = 0, total = 0, now = chosen(want);
    now.forEach(function (group) {
      group.blocks.forEach(function (line) {
        line.shown = (!want.show || line.show.indexOf(want.show) >= 0) && (!want.rule || line.rule === want.rule) &&
          (!want.text || isFound(want.text, textOf(line), line.element.firstElementChild.firstChild.textContent));
        if (line.shown) count += 1;
        total += 1;
      });
    });
    showGroups(now, true, function () {});
    return count.toLocaleString('en') + ' of ' + total.toLocaleString('en') + ' lines shown';
  });
})();
