'use strict';
/**
 * The overlay over a directory that is not empty: whatever a test makes under a free name is made in the lower first, so
 * that all it does later to its files (write, append, truncate, chmod, rename, unlink, link …) is done to lower files.
 *
 * That happens below every face, at the system calls: mkdir, symlink and writeFile are carried out by the real fs instead,
 * an open that creates finds an empty lower file to open, a link of an untouched lower file is made in the lower. Where the
 * new name would not show (its parent is in the overlay alone, the name was deleted there, …) the overlay does it all.
 *
 * What was made goes into a ledger (CONFORMANCE_LEDGER), a line each: the runner holds the directory against it.
 */
const fs = require('node:fs');
const path = require('node:path');
const { Overlay } = require('../../../dist/index.js');
const { Kernel } = require('../../../dist/overlay/kernel.js');
const { toBytes } = require('../../../dist/core/path.js');

const { O_CREAT, O_EXCL, O_TRUNC, O_WRONLY, O_DIRECTORY } = fs.constants;

module.exports = ({ testDir }) => {
  const overlay = Overlay.openSync({ root: testDir, outside: 'readonly' });
  const plain = { ...pick(Kernel.prototype, ['mkdir', 'symlink', 'writeFile', 'open', 'link', 'realpath', 'lstat', 'cwd']) };

  /** Makes something in the lower under a name that is free; says whether it shows in the overlay now. */
  function made(kernel, name, make) {
    const at = lowerName(kernel, name);
    if (at === undefined || exists(at) || shows(kernel, name)) return false;
    if (!succeeds(() => { make(at); })) return false;
    if (!shows(kernel, name)) {
      fs.rmSync(at, { recursive: true });
      return false;
    }
    note(at);
    return true;
  }

  /** The real name that `name` would have in the lower, its parent's symlinks followed; undefined outside of it. */
  function lowerName(kernel, name) {
    const absolute = path.resolve(plain.cwd.call(kernel), name);
    if (!absolute.startsWith(testDir + '/') || name.endsWith('/')) return undefined;
    let parent;
    if (!succeeds(() => { parent = plain.realpath.call(kernel, path.dirname(absolute)); })) return undefined;
    if (parent !== testDir && !parent.startsWith(testDir + '/')) return undefined;
    const bytes = Buffer.from(toBytes(parent));
    // The same directory in the lower, by no symlink of its own.
    if (!fs.existsSync(bytes) || !fs.realpathSync(bytes, 'buffer').equals(bytes)) return undefined;
    return Buffer.concat([bytes, Buffer.from('/'), Buffer.from(toBytes(path.basename(absolute)))]);
  }

  function shows(kernel, name) {
    let attr;
    return succeeds(() => { attr = plain.lstat.call(kernel, name); }) && attr !== undefined;
  }

  Kernel.prototype.mkdir = function mkdir(name, mode) {
    if (!made(this, name, (at) => { fs.mkdirSync(at, mode); })) plain.mkdir.call(this, name, mode);
  };
  Kernel.prototype.symlink = function symlink(target, name) {
    if (!made(this, name, (at) => { fs.symlinkSync(Buffer.from(toBytes(target)), at); })) plain.symlink.call(this, target, name);
  };
  Kernel.prototype.writeFile = function writeFile(name, bytes, flags, mode) {
    const done = (flags & O_CREAT) !== 0 && made(this, name, (at) => { fs.writeFileSync(at, bytes, { flag: 'wx', mode }); });
    if (!done) plain.writeFile.call(this, name, bytes, flags, mode);
  };
  Kernel.prototype.open = function open(name, flags, mode) {
    // A new file may be opened for writing whatever its mode; the one made here is opened a second time.
    const usable = process.getuid() === 0 || (mode & 0o600) === 0o600;
    const first = usable && (flags & O_CREAT) !== 0 && (flags & O_DIRECTORY) === 0 &&
      made(this, name, (at) => { fs.closeSync(fs.openSync(at, O_CREAT | O_EXCL | O_WRONLY, mode)); });
    return plain.open.call(this, name, first ? flags & ~(O_EXCL | O_TRUNC) : flags, mode);
  };
  Kernel.prototype.link = function link(from, name) {
    const source = lowerName(this, from);
    const done = source !== undefined && untouched(this, source, from) && made(this, name, (at) => { fs.linkSync(source, at); });
    if (done) note(source);
    else plain.link.call(this, from, name);
  };

  function untouched(kernel, at, name) {
    const real = fs.lstatSync(at, { bigint: true, throwIfNoEntry: false });
    let attr;
    if (real === undefined || !succeeds(() => { attr = plain.lstat.call(kernel, name); }) || attr === undefined) return false;
    return attr.ctime === real.ctimeNs && attr.ino === real.ino && BigInt(attr.nlink) === real.nlink;
  }

  return overlay.fs;
};

/** A line of the ledger: the name (latin1, so that any bytes fit) and what must not change of it. */
function note(at) {
  const { mode, ino, size, mtimeNs, ctimeNs } = fs.lstatSync(at, { bigint: true });
  const isDirectory = (mode & 0o170000n) === 0o040000n;
  const keys = isDirectory ? [mode, ino] : [mode, ino, size, mtimeNs, ctimeNs];
  fs.appendFileSync(process.env.CONFORMANCE_LEDGER, JSON.stringify([at.toString('latin1'), keys.join(' ')]) + '\n');
}

function exists(at) {
  return fs.lstatSync(at, { throwIfNoEntry: false }) !== undefined;
}

function succeeds(action) {
  try {
    action();
    return true;
  } catch {
    // Whatever refuses it here refuses it again, in its own words, when the overlay is asked.
    return false;
  }
}

function pick(from, names) {
  return Object.fromEntries(names.map((name) => [name, from[name]]));
}
