'use strict';
/** The overlay over the test's own directory, which is empty at first: what the tests make lives in the overlay alone. */
const { Overlay } = require('../../../dist/index.js');

module.exports = ({ testDir }) => Overlay.openSync({ root: testDir, outside: 'readonly' }).fs;
