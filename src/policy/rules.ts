import type { RuleRecord } from '../core/event.ts';
import { ROOT, type TreePath } from '../core/path.ts';
import { OPERATIONS, type Operation, type PathRules, type Ruling } from '../overlay/ruling.ts';
import { compileGlob, type Glob } from './glob.ts';

/** What a rule does about a path that it matches. */
export type Effect = 'flag' | 'deny' | 'hide';

/** A rule over paths. It speaks of all that `match` matches, and of everything below. */
export interface Rule {
  /** Glob over paths relative to the root, as picomatch has it; `*` and `**` match names with a leading dot too. */
  readonly match: string;
  /** The operations it speaks of; all of them where absent. A name is hidden from every operation, whichever are given. */
  readonly on?: readonly Operation[];
  readonly effect: Effect;
}

/** Directories whose ruling is kept; beyond, all are forgotten and found out again. */
const KEPT_DIRECTORIES = 16_384;

const EFFECTS: readonly unknown[] = ['flag', 'deny', 'hide'];
const KEYS: readonly string[] = ['match', 'on', 'effect'];

interface Compiled extends Rule {
  readonly glob: Glob;
}

/** A directory: which rules hold of all that is in it, and which may hold of some of it. */
interface Directory {
  readonly rules: readonly Compiled[];
  readonly ruling: Ruling | undefined;
  readonly open: readonly Compiled[];
}

/**
 * Rules compiled. All that match hold; where they differ, what is hidden is hidden, and what is denied is denied, whatever their
 * order. Pure over paths.
 */
export class Rules implements PathRules {
  readonly list: readonly Rule[];
  readonly hide: boolean;
  private readonly compiled: readonly Compiled[];
  private readonly root: Directory;
  private readonly directories = new Map<string, Directory>();
  private last: { readonly path: TreePath; readonly ruling: Ruling | undefined };

  /** Throws TypeError naming the first rule that is malformed, and what about it. */
  constructor(rules: readonly Rule[]) {
    checkRules(rules);
    this.list = rules;
    this.hide = rules.some(({ effect }) => effect === 'hide');
    const compiled = this.compiled = rules.map((rule): Compiled => ({ ...rule, glob: compileGlob(rule.match) }));
    // The root itself cannot be hidden: it has no name.
    const whole = compiled.filter(({ glob, effect }) => glob.glob === '**' && effect !== 'hide');
    this.root = { rules: whole, ruling: rulingOf(whole), open: compiled.filter((rule) => !whole.includes(rule)) };
    this.last = { path: ROOT, ruling: this.root.ruling };
  }

  at(path: TreePath): Ruling | undefined {
    // One call asks of one path several times.
    if (path === this.last.path) return this.last.ruling;
    const ruling = this.find(path);
    this.last = { path, ruling };
    return ruling;
  }

  reach(directory: TreePath): boolean {
    return this.directory(directory).open.length > 0;
  }

  private find(path: TreePath): Ruling | undefined {
    const above = this.above(path);
    if (path === ROOT || above.open.length === 0) return above.ruling;
    for (const { glob } of above.open) if (glob.matches(path)) return this.directory(path).ruling;
    return above.ruling;
  }

  private above(path: string): Directory {
    const slash = path.lastIndexOf('/');
    return slash < 0 ? this.root : this.directory(path.slice(0, slash));
  }

  private directory(path: string): Directory {
    if (path === ROOT) return this.root;
    const known = this.directories.get(path);
    if (known !== undefined) return known;
    const above = this.above(path), own = above.open.filter(({ glob }) => glob.matches(path));
    const rules = own.length === 0 ? above.rules : this.compiled.filter((rule) => above.rules.includes(rule) || own.includes(rule));
    const found: Directory = {
      rules, ruling: own.length === 0 ? above.ruling : rulingOf(rules),
      open: above.open.filter((rule) => !own.includes(rule) && mayMatchBelow(rule.glob.base, path)),
    };
    if (this.directories.size >= KEPT_DIRECTORIES) this.directories.clear();
    this.directories.set(path, found);
    return found;
  }
}

/** Rules that flag, deny and hide whole globs, for a caller who has lists of these. Throws TypeError naming a malformed one. */
export function rulesOf(globs: { readonly [E in Effect]?: readonly string[] }): Rule[] {
  const rules: Rule[] = [];
  for (const effect of ['flag', 'deny', 'hide'] as const) {
    for (const match of globs[effect] ?? []) rules.push({ match, effect });
  }
  return [...new Rules(rules).list];
}

/** Throws TypeError unless `rules` is a list of rules; whether their globs are well-formed is seen in compiling them. */
export function checkRules(rules: unknown): asserts rules is readonly Rule[] {
  if (!Array.isArray(rules)) throw invalid('rules', 'a list of { match, on, effect }');
  for (const [at, rule] of (rules as unknown[]).entries()) {
    const name = `rules[${at}]`;
    if (typeof rule !== 'object' || rule === null) throw invalid(name, 'an object { match, on, effect }');
    const unknown = Object.keys(rule).find((key) => !KEYS.includes(key));
    if (unknown !== undefined) throw Object.assign(new TypeError(`unknown option "${name}.${unknown}"`), { code: 'ERR_UNKNOWN_OPTION' });
    const { match, on, effect } = rule as Partial<Rule>;
    if (typeof match !== 'string') throw invalid(`${name}.match`, 'a glob');
    // It would match the directories above what it spares, and so all below these.
    if (/^!(?!\()/.test(match)) throw invalid(`${name}.match`, `a glob that is not negated: "${match}"; \`!(a|b)\` is a name other than these`);
    if (!EFFECTS.includes(effect)) throw invalid(`${name}.effect`, "'flag', 'deny' or 'hide'");
    if (on === undefined) continue;
    if (!Array.isArray(on) || on.length === 0) throw invalid(`${name}.on`, 'a list of operations');
    for (const each of on as unknown[]) {
      if (!OPERATIONS.some((operation) => operation === each)) {
        throw invalid(`${name}.on`, `of ${OPERATIONS.join(', ')}; ${JSON.stringify(each)} is none of them`);
      }
    }
  }
}

/** Whether two lists of rules are the same, rule by rule. */
export function sameRules(a: readonly RuleRecord[], b: readonly RuleRecord[]): boolean {
  return a.length === b.length && a.every(({ match, effect, on }, at) => {
    const other = b[at] as RuleRecord;
    return match === other.match && effect === other.effect && on?.join() === other.on?.join();
  });
}

function rulingOf(rules: readonly Compiled[]): Ruling | undefined {
  if (rules.length === 0) return undefined;
  const denies = new Map<Operation, string>(), flags = new Map<Operation, string[]>();
  for (const { match, effect, on = OPERATIONS } of rules) {
    if (effect === 'hide') continue;
    for (const operation of on) {
      if (effect === 'deny') denies.set(operation, denies.get(operation) ?? match);
      else flags.set(operation, [...(flags.get(operation) ?? []), match]);
    }
  }
  return { hides: rules.find(({ effect }) => effect === 'hide')?.match, denies, flags };
}

function mayMatchBelow(base: string, directory: string): boolean {
  if (base === '' || directory === base) return true;
  return base.length > directory.length ? base.startsWith(directory + '/') : directory.startsWith(base + '/');
}

function invalid(name: string, wanted: string): TypeError {
  return Object.assign(new TypeError(`option "${name}" has to be ${wanted}`), { code: 'ERR_INVALID_OPTION' });
}
