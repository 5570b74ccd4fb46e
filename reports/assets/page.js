/* reshape-conformance: a part of the pages of this site */
/* The filters of report.html, and buttons that copy a command or a script. */
(function () {
  var facets = JSON.parse(document.getElementById('facets').textContent).map(function (each) {
    return {verdict: each[0], operation: each[1], type: each[2], document: each[3], diagnosis: each[4], shown: true};
  });
  var groups = groupBlocks('[data-block]', function (element) {
    return {element: element, rule: element.getAttribute('data-r'), isCase: element.classList.contains('case'), words: null,
      rows: Array.from(element.querySelectorAll('tr[data-f]'), function (row) {
        return {element: row, facet: facets[Number(row.getAttribute('data-f'))]};
      })};
  });
  var idle = document.querySelectorAll('[data-idle]'), blocks = blocksOf(groups);
  var total = blocks.filter(function (block) { return block.isCase; }).length;

  /* The id, the title and the rule, which are what a reader searches for. */
  function wordsOf(block) {
    if (block.words === null) {
      var head = block.element.querySelector('summary, th');
      block.words = [(block.isCase ? head.lastElementChild : head).textContent, block.element.id.replace('failure-', ''), block.rule].join(' ').toLowerCase();
    }
    return block.words;
  }

  function show(want) {
    var cases = 0, any = Object.keys(want).length > 0;
    facets.forEach(function (facet) {
      facet.shown = ['verdict', 'diagnosis', 'operation', 'type', 'document'].every(function (name) {
        return !want[name] || facet[name].indexOf(want[name]) >= 0;
      });
    });
    blocks.forEach(function (block) {
      block.shown = (!want.rule || want.rule === block.rule) && (!want.text || isFound(want.text, wordsOf(block), wordsOf(block))) &&
        block.rows.some(function (row) { return row.facet.shown; });
      if (block.shown && block.isCase) cases += 1;
    });
    showGroups(groups, any, function (block) {
      block.rows.forEach(function (row) { hide(row.element, !row.facet.shown); });
    });
    idle.forEach(function (each) { hide(each, any); });
    if (!any) return '';
    return total ? cases + ' of ' + total + ' cases shown' :
      blocks.filter(function (block) { return block.shown; }).length + ' of ' + blocks.length + ' failures shown';
  }
  whenIdle(blocks, wordsOf);

  /* ── commands and scripts ── */

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
    button.setAttribute('aria-label', 'Copy the ' + pre.getAttribute('data-copy'));
    button.addEventListener('click', function () { copy(pre, button); });
    pre.parentNode.insertBefore(button, pre);
  });

  if (!document.getElementById('filters')) return;
  wireFilters('#' + document.querySelector('section:has(#filters) h2').id, show);
  if (!blocks.length) document.getElementById('filters').hidden = true;
})();
