'use strict';
/** The real fs: what passes here is what this machine can pass at all. */
module.exports = () => require('node:fs');
