import { fork, type ChildProcess } from 'node:child_process';
import nodeFs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, it } from 'vitest';
import { Overlay, type OverlayMount } from '../../src/index.ts';
import type { NodeFs } from '../model/world.ts';
import { lack } from '../mount/union.ts';
import { facesOf, mountFace, type Answer, type Order } from './face.ts';
import type { Face } from './face.ts';

/** What a lower holds, by path: a file's content, a directory (`null`), a symlink, or a file with a mode. */
export type Tree = Readonly<Record<string, string | Buffer | null | { target: string } | { file: string; mode: number } | { linkTo: string }>>;

/** Where a case happens: an overlay over a fresh lower, and one style of calling it. */
export interface Ground {
  readonly face: Face;
  readonly fs: NodeFs;
  readonly overlay: Overlay;
  /** The lower directory, under whose path the overlay shows its tree too. */
  readonly root: string;
  /** The session's directory. */
  readonly session: string;
  /** Something to write to beside the root, where the overlay must never get. */
  readonly outside: string;
  at(name: string): string;
  /** Closes the session and takes it up again; `overlay`, `fs` and `face` are the new ones. */
  reopen(): Promise<void>;
  /** An outsider changed the lower on purpose: what it is now is what must stay. */
  lowerChanged(): void;
  changes(): string[];
}

const missing = lack('palimpsest');
/** As it is shipped: a mount is only to be had from there. */
const BUNDLE = path.join(import.meta.dirname, '..', '..', 'dist', 'bundle', 'palimpsest.js');
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(`CI must be able to mount: ${missing}`);
const STYLES: readonly Face['name'][] = [
  'sync', 'callback', 'promises', 'descriptor', 'streams', ...(missing === undefined ? ['mount'] as const : []),
];

/** Cases about what leads out of the tree: on a mount the kernel walks paths, and outside is what it is everywhere. */
const OUTSIDE = /^(?:15|21)\./;

/** A case in every style of calling. The lower is checked to be untouched afterwards. */
export function inEveryFace(title: string, tree: Tree, body: (ground: Ground) => Promise<void>): void {
  it.each(STYLES.filter((style) => style !== 'mount' || !OUTSIDE.test(title)))(`${title} (%s)`, (style) => onGround(tree, style, body));
}

/** A case that names its calls itself. */
export function once(title: string, tree: Tree, body: (ground: Ground) => Promise<void>): void {
  it.each([title])('%s', () => onGround(tree, 'sync', body));
}

let caller: ChildProcess | undefined;
let orders = 0;

/** Has the other process call its `node:fs`; it lives as long as this one. */
async function ordered(call: string, args: readonly unknown[]): Promise<unknown> {
  caller ??= fork(path.join(import.meta.dirname, 'caller.ts'), { execArgv: ['--import', 'tsx'], serialization: 'advanced' });
  const child = caller, id = ++orders;
  child.setMaxListeners(100);
  const { result, fault } = await new Promise<Answer>((resolve) => {
    const hear = (answer: Answer): void => {
      if (answer.id !== id) return;
      child.off('message', hear);
      resolve(answer);
    };
    child.on('message', hear);
    child.send({ id, call, args, umask: process.umask() } satisfies Order);
  });
  if (fault !== undefined) throw Object.assign(new Error(fault.message), fault);
  return result;
}

async function onGround(tree: Tree, style: Face['name'], body: (ground: Ground) => Promise<void>): Promise<void> {
  const scratch = nodeFs.realpathSync(nodeFs.mkdtempSync(path.join(os.tmpdir(), 'palimpsest-case-')));
  const root = path.join(scratch, 'root'), session = path.join(scratch, 'session'), outside = path.join(scratch, 'outside');
  nodeFs.mkdirSync(root);
  nodeFs.mkdirSync(outside);
  nodeFs.writeFileSync(path.join(outside, 'secret'), 'secret');
  plant(root, tree);
  const made = style === 'mount' ? (await import(BUNDLE) as { Overlay: typeof Overlay }).Overlay : Overlay;
  const open = (): Overlay => made.openSync({ root, session, actor: 'ann' });
  const mountPoint = path.join(scratch, 'mount');
  const mount = async (): Promise<OverlayMount | undefined> => (style === 'mount' ? overlay.mount(mountPoint) : undefined);
  if (style === 'mount') nodeFs.mkdirSync(mountPoint);
  let overlay = open(), before = evidence(scratch), mounted = await mount();
  const leave = async (): Promise<void> => {
    await mounted?.unmount();
    mounted = undefined;
  };
  try {
    const ground = {
      get overlay() { return overlay; },
      get fs() { return overlay.fs; },
      get face() {
        return style === 'mount' ? mountFace(root, mountPoint, ordered) : facesOf(ground.fs).find(({ name }) => name === style) as Face;
      },
      root, session, outside,
      at: (name: string) => (name === '' ? root : `${root}/${name}`),
      reopen: async () => {
        await leave();
        await overlay.close();
        overlay = open();
        mounted = await mount();
      },
      lowerChanged: () => { before = evidence(scratch); },
      changes: () => [...overlay.changes()].map((row) => [row.kind, row.path, ...('from' in row && row.from !== undefined ? [`from ${row.from}`] : [])].join(' ')),
    };
    await body(ground);
    await leave();
    await overlay.close();
    expect(evidence(scratch), 'the lower and what lies beside it').toEqual(before);
  } finally {
    await leave();
    await overlay.close();
    nodeFs.rmSync(scratch, { recursive: true, force: true });
  }
}

/** Old enough that no case's own changes can be mistaken for it. */
export const OLD = 1_000_000_000;

/** Makes `tree` below `root`, all of it with old times. */
export function plant(root: string, tree: Tree): void {
  for (const [name, entry] of Object.entries(tree)) {
    const at = path.join(root, name);
    nodeFs.mkdirSync(path.dirname(at), { recursive: true });
    if (entry === null) nodeFs.mkdirSync(at, { recursive: true });
    else if (typeof entry === 'string' || Buffer.isBuffer(entry)) nodeFs.writeFileSync(at, entry, { mode: 0o644 });
    else if ('target' in entry) nodeFs.symlinkSync(entry.target, at);
    else if ('linkTo' in entry) nodeFs.linkSync(path.join(root, entry.linkTo), at);
    else {
      nodeFs.writeFileSync(at, entry.file);
      nodeFs.chmodSync(at, entry.mode);
    }
  }
  for (const name of [...nodeFs.readdirSync(root, { recursive: true, encoding: 'utf8' }).reverse(), '']) {
    nodeFs.lutimesSync(path.join(root, name), OLD - 1000, OLD);
  }
}

/** All that stat and content tell of the lower and of the directory beside it; access times of regular files only. */
function evidence(scratch: string): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  const visit = (name: string): void => {
    const at = Buffer.from(`${scratch}/${name}`, 'latin1');
    const stats = nodeFs.lstatSync(at, { bigint: true });
    const { mode, ino, nlink, uid, gid, size, mtimeNs, ctimeNs, atimeNs } = stats;
    found[name] = {
      mode, ino, nlink, uid, gid, mtimeNs, ctimeNs,
      ...(stats.isFile() ? { size, atimeNs, content: quietRead(at) } : {}),
      ...(stats.isSymbolicLink() ? { target: nodeFs.readlinkSync(at) } : {}),
    };
    if (!stats.isDirectory()) return;
    for (const child of nodeFs.readdirSync(at, { encoding: 'buffer' })) visit(`${name}/${child.toString('latin1')}`);
  };
  visit('root');
  visit('outside');
  return found;
}

/** Reads without moving the access time. Large files are told by their size and times. */
function quietRead(at: Buffer): string {
  const O_NOATIME = 0o1000000;
  const fd = nodeFs.openSync(at, nodeFs.constants.O_RDONLY | O_NOATIME);
  try {
    return nodeFs.fstatSync(fd).size > 1 << 20 ? 'large' : nodeFs.readFileSync(fd, 'latin1');
  } finally {
    nodeFs.closeSync(fd);
  }
}

/** Expects the errno `code` of an act. */
export async function refuses(act: () => unknown, code: string): Promise<void> {
  await expect((async () => act())(), `refused with ${code}`).rejects.toMatchObject({ code });
}
