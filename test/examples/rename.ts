/**
 * `npm run example`: a real piece of work over a real directory that stays as it is. TypeScript renames a function of
 * this project wherever it is used, reading and writing through `overlay.fs`; then what was read, looked for in vain
 * and changed is told from the log.
 */
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { Overlay } from '../../src/index.ts';

const root = join(import.meta.dirname, '..', '..', 'src');
const before = digestOf(root);

// Paths outside of src are the real ones, read-only: the compiler's own libraries, node_modules.
const overlay = await Overlay.open({ root, actor: 'refactorer', outside: 'readonly' });
const { fs } = overlay;

overlay.mark('look for settings');
const settings = ['.refactor.json', '.config/refactor.json', 'refactor.config.ts'].find((name) => fs.existsSync(join(root, name)));

overlay.mark('rename');
const files = fs.readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts')).map((name) => join(root, name));
const service = ts.createLanguageService({
  getScriptFileNames: () => files,
  getScriptVersion: () => '1',
  getScriptSnapshot: (name) => (fs.existsSync(name) ? ts.ScriptSnapshot.fromString(fs.readFileSync(name, 'utf8')) : undefined),
  getCurrentDirectory: () => root,
  getCompilationSettings: () => ({ target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.NodeNext, allowImportingTsExtensions: true, noEmit: true, types: [] }),
  getDefaultLibFileName: (options) => ts.getDefaultLibFilePath(options),
  fileExists: (name) => fs.existsSync(name),
  readFile: (name) => fs.readFileSync(name, 'utf8'),
});
const declaration = join(root, 'core', 'path.ts');
const position = fs.readFileSync(declaration, 'utf8').indexOf('isWithin');
const places = service.findRenameLocations(declaration, position, false, false, { providePrefixAndSuffixTextForRename: false }) ?? [];
for (const name of new Set(places.map(({ fileName }) => fileName))) {
  const spans = places.filter(({ fileName }) => fileName === name).map(({ textSpan }) => textSpan);
  let text = fs.readFileSync(name, 'utf8');
  // From the end, so that earlier places keep their offsets.
  for (const { start, length } of spans.sort((a, b) => b.start - a.start)) {
    text = `${text.slice(0, start)}liesWithin${text.slice(start + length)}`;
  }
  fs.writeFileSync(name, text);
}
fs.writeFileSync(join(root, 'RENAMED.md'), `isWithin is liesWithin now, in ${places.length} places.\n`);

const events = [...overlay.events()];
const paths = (op: string): string[] => [...new Set(events.flatMap((event) => (event.op === op && 'path' in event ? [event.path ?? ''] : [])))];
const show = (title: string, lines: readonly string[]): void => {
  const shown = lines.slice(0, 6), rest = lines.length - shown.length;
  console.log(`\n${title}: ${lines.length}`);
  for (const line of shown) console.log(`  ${line}`);
  if (rest > 0) console.log(`  … and ${rest} more`);
};

console.log(`TypeScript renamed isWithin in ${places.length} places of ${root}; settings: ${settings ?? 'none found'}.`);
console.log(`The log has ${overlay.head.seq} events, by ${[...new Set(events.map(({ actor }) => actor))].join(', ')}.`);
show('read', paths('read').map((path) => `${path}  ${(overlay.version(path) ?? '').slice(0, 19)}`));
show('looked for and not there', paths('miss'));
show('changed', overlay.changes().map(({ kind, path }) => `${kind} ${path}`));
console.log(`\nthe directory itself: ${digestOf(root) === before ? 'untouched' : 'CHANGED'}`);
await overlay.close();

/** One digest over names, contents, modes and times of change of all that is in a real directory. */
function digestOf(directory: string): string {
  const hash = createHash('sha256');
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort()) {
    const { mode, ctimeNs } = lstatSync(join(directory, name), { bigint: true });
    hash.update(`${name}\0${mode}\0${ctimeNs}\0`);
    if ((mode & 0o170000n) === 0o100000n) hash.update(readFileSync(join(directory, name)));
  }
  return hash.digest('hex');
}
