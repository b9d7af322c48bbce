import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, normalize } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

/**
 * The arrows of src/README.md. A file belongs to its first directory below `src`; a file of `src` itself is `index`.
 * `may`: the other places it may import. `node`: whether it may import built-in modules. `packages`: `'any'` of
 * package.json's dependencies, or just these.
 */
interface Rule {
  readonly may: readonly string[];
  readonly node: boolean;
  readonly packages: readonly string[] | 'any';
}

const LIVE = ['core', 'store', 'lower', 'overlay'];
const SHELL: Rule = { may: ['index'], node: true, packages: 'any' };
const RULES: Readonly<Record<string, Rule>> = {
  core: { may: [], node: false, packages: ['immer'] },
  store: { may: ['core'], node: true, packages: 'any' },
  lower: { may: ['core'], node: true, packages: 'any' },
  overlay: { may: ['core', 'store', 'lower'], node: true, packages: 'any' },
  policy: { may: LIVE, node: true, packages: 'any' },
  commit: { may: LIVE, node: true, packages: 'any' },
  replay: { may: LIVE, node: true, packages: 'any' },
  index: { may: [...LIVE, 'policy', 'commit', 'replay'], node: true, packages: 'any' },
  tools: SHELL,
  mount: SHELL,
  adapters: SHELL,
  report: SHELL,
  cli: { may: ['index', 'tools', 'mount', 'adapters', 'report'], node: true, packages: 'any' },
};

/** File below `src` → what it imports, as written: types, re-exports and `import()` included. */
type Graph = ReadonlyMap<string, readonly string[]>;

const BUILTIN = new Set(builtinModules);
const isBuiltin = (specifier: string): boolean => specifier.startsWith('node:') || BUILTIN.has(specifier);
const placeOf = (file: string): string => (file.includes('/') ? file.slice(0, file.indexOf('/')) : 'index');
const packageOf = (specifier: string): string => specifier.split('/').slice(0, specifier.startsWith('@') ? 2 : 1).join('/');
const targetOf = (file: string, specifier: string): string => normalize(join(dirname(file), specifier));

/** One sentence for each import against the arrows. */
function violations(graph: Graph, dependencies: ReadonlySet<string>): string[] {
  const found: string[] = [];
  for (const [file, specifiers] of graph) {
    const place = placeOf(file), rule = RULES[place];
    if (rule === undefined) {
      found.push(`${file}: no rule says what ${place}/ may import`);
      continue;
    }
    for (const specifier of specifiers) {
      if (specifier.startsWith('.')) {
        const target = targetOf(file, specifier);
        if (!graph.has(target)) found.push(`${file} imports ${target}, which is not there`);
        else if (placeOf(target) !== place && !rule.may.includes(placeOf(target))) found.push(`${file} imports ${target}`);
      } else if (isBuiltin(specifier)) {
        if (!rule.node) found.push(`${file} imports ${specifier}`);
        else if (!specifier.startsWith('node:')) found.push(`${file} imports ${specifier} without node:`);
      } else {
        const name = packageOf(specifier);
        if (rule.packages !== 'any' && !rule.packages.includes(name)) found.push(`${file} imports ${name}`);
        else if (!dependencies.has(name)) found.push(`${file} imports ${name}, which is no dependency of package.json`);
      }
    }
  }
  return found;
}

/** Each cycle once, as `a → b → a`. */
function cycles(graph: Graph): string[] {
  const found: string[] = [], done = new Set<string>(), path: string[] = [];
  const visit = (file: string): void => {
    const at = path.indexOf(file);
    if (at >= 0) found.push([...path.slice(at), file].join(' → '));
    if (at >= 0 || done.has(file)) return;
    path.push(file);
    for (const specifier of graph.get(file) ?? []) if (specifier.startsWith('.')) visit(targetOf(file, specifier));
    path.pop();
    done.add(file);
  };
  for (const file of graph.keys()) visit(file);
  return found;
}

function read(src: string): Graph {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts')).sort();
  return new Map(files.map((file) => {
    const { importedFiles } = ts.preProcessFile(readFileSync(join(src, file), 'utf8'), true, true);
    return [file, importedFiles.map(({ fileName }) => fileName)];
  }));
}

describe('imports of src', () => {
  const root = join(import.meta.dirname, '..');
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, Record<string, string>>;
  const dependencies = new Set(Object.keys({ ...manifest['dependencies'], ...manifest['peerDependencies'] }));
  const graph = read(join(root, 'src'));

  it('run along the arrows only', () => {
    expect(violations(graph, dependencies)).toEqual([]);
  });

  it('form no cycle, types included', () => {
    expect(cycles(graph)).toEqual([]);
  });

  it('are all seen', () => {
    expect(graph.get('core/event.ts')).toContain('./version.ts');
  });
});

describe('the check itself', () => {
  const check = (entries: Record<string, string[]>): string[] => violations(new Map(Object.entries(entries)), new Set(['immer', 'nanoid']));

  it.each([
    ['core that imports a built-in module', { 'core/a.ts': ['node:fs'] }],
    ['core that imports a package but immer', { 'core/a.ts': ['nanoid'] }],
    ['a package that package.json does not have', { 'store/a.ts': ['left-pad/x'] }],
    ['an arrow that points up', { 'lower/a.ts': ['../overlay/b.ts'], 'overlay/b.ts': [] }],
    ['a shell that goes past the index', { 'cli/a.ts': ['../core/b.ts'], 'core/b.ts': [] }],
    ['a place without a rule', { 'utils/a.ts': [] }],
    ['a file that is not there', { 'core/a.ts': ['./b.ts'] }],
    ['a built-in module without its prefix', { 'store/a.ts': ['fs'] }],
  ])('refuses %s', (_, entries: Record<string, string[]>) => {
    expect(check(entries)).toHaveLength(1);
  });

  it('allows what the arrows allow', () => {
    expect(check({ 'index.ts': ['./overlay/a.ts', 'nanoid'], 'overlay/a.ts': ['../core/b.ts', 'node:fs'], 'core/b.ts': ['immer'] })).toEqual([]);
  });

  it('finds a cycle of three files once', () => {
    const graph = new Map([['a.ts', ['./b.ts']], ['b.ts', ['./c.ts']], ['c.ts', ['./a.ts']]]);
    expect(cycles(graph)).toEqual(['a.ts → b.ts → c.ts → a.ts']);
  });
});
