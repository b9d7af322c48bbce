import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeState, encodeState } from '../../src/core/checkpoint.ts';
import { Overlay, salvageSession, verifySession, type Verification } from '../../src/index.ts';
import { readCheckpoint, readCheckpointData, writeCheckpoint } from '../../src/store/checkpoint.ts';

let scratch: string, root: string, session: string, log: Buffer, lines: string[], head: { seq: number; seal: string };
beforeAll(() => {
  scratch = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'palimpsest-verify-')));
  root = join(scratch, 'root');
  session = join(scratch, 'session');
  fs.mkdirSync(root);
  for (let i = 0; i < 10; i++) fs.writeFileSync(join(root, `f${i}`), `file ${i}\n`);
  const overlay = Overlay.openSync({ root, session }), { fs: face } = overlay;
  for (let i = 0; i < 10; i++) {
    face.readFileSync(join(root, `f${i}`));
    face.writeFileSync(join(root, `n${i}`), `new ${i}\n`);
    face.existsSync(join(root, `m${i}`));
    if (i === 4) overlay.mark('half');
  }
  face.writeFileSync(join(root, 'large'), Buffer.alloc(100_000, 7));
  face.renameSync(join(root, 'f1'), join(root, 'g1'));
  ({ head } = overlay);
  overlay.closeSync();
  log = fs.readFileSync(join(session, 'log.jsonl'));
  lines = log.toString().split(/(?<=\n)/);
});
afterAll(() => fs.rmSync(scratch, { recursive: true, force: true }));

/** A copy of the session with another log; the same directory each time. */
function tampered(text: string | Uint8Array): string {
  const copy = join(scratch, 'copy');
  fs.mkdirSync(copy, { recursive: true });
  if (!fs.existsSync(join(copy, 'blobs'))) fs.cpSync(join(session, 'blobs'), join(copy, 'blobs'), { recursive: true });
  // Anew: ext4 waits for the disk at the close of a file that was truncated.
  fs.rmSync(join(copy, 'log.jsonl'), { force: true });
  fs.writeFileSync(join(copy, 'log.jsonl'), text);
  return copy;
}

const wordsOf = ({ findings }: Verification): string[] => findings.map(({ words }) => words);

/** A line's own crc, for who wants to make a change that no crc tells of. */
function withCrc(line: string): string {
  const json = line.slice(0, line.lastIndexOf(',"crc"'));
  return `${json},"crc":"${crc32(json).toString(16).padStart(8, '0')}"}\n`;
}

describe('verify', () => {
  it('finds nothing where nothing was done', () => {
    const found = verifySession(session, head);
    expect(found).toMatchObject({ findings: [], lastSeq: lines.length - 1, tornBytes: 0, unnamed: 0, blobs: 11, sealedSeq: lines.length - 1 });
    expect(verifySession(session, { seal: head.seal }).findings).toEqual([]);
    expect(verifySession(session, { seal: found.seal as string, seq: lines.length - 1 }).findings).toEqual([]);
  });

  it.each<[string, (at: number) => string[], (at: number) => number]>([
    ['changed', (at) => lines.with(at, (lines[at] as string).replace(/"(time|created)":"2/, '"$1":"3')), (at) => at + 1],
    ['dropped', (at) => lines.toSpliced(at, 1), (at) => at + 1],
    ['repeated', (at) => lines.toSpliced(at, 0, lines[at] as string), (at) => at + 2],
    ['swapped with the next', (at) => lines.with(at, lines[at + 1] as string).with(at + 1, lines[at] as string), (at) => at + 1],
    ['inserted', (at) => lines.toSpliced(at + 1, 0, withCrc('{"seq":5,"time":"2026-12-01T00:00:00.000Z","actor":"eve","op":"mark","label":"x","crc":"')), (at) => at + 2],
  ])('names every line that was %s', (what, change, named) => {
    for (let at = 0; at < lines.length; at++) {
      if (what === 'swapped with the next' && at === lines.length - 1) continue;
      const isHeader = at === 0 && (what === 'dropped' || what.startsWith('swapped'));
      const words = isHeader ? 'does not begin with' : what === 'inserted' && at === 4 ? ' line 7: seq repeated' : ` line ${named(at)}: `;
      // What is gone from the end was perhaps never there: that takes a head.
      const isEnd = what === 'dropped' && at === lines.length - 1;
      expect(verifySessionOrError(tampered(change(at).join('')))[0] ?? 'nothing', `line ${at + 1}`).toContain(isEnd ? 'nothing' : words);
    }
  });

  it('names a line that was changed with its crc by the seal that follows', () => {
    for (let at = 1; at < lines.length - 1; at++) {
      const changed = withCrc((lines[at] as string).replace('"time":"2', '"time":"3'));
      const [first] = wordsOf(verifySession(tampered(lines.with(at, changed).join(''))));
      expect(first, `line ${at + 1}`).toContain(`line ${lines.length}: seal mismatch`);
    }
  });

  it('holds a log to a head: whatever was made up before it shows, whatever is gone, and nothing that came later', () => {
    const unsealed = lines.slice(0, -1);
    for (let at = 1; at < unsealed.length; at++) {
      const changed = withCrc((unsealed[at] as string).replace('"time":"2', '"time":"3'));
      expect(verifySession(tampered(unsealed.with(at, changed).join('')), head).findings, `line ${at + 1}`).toMatchObject([{ kind: 'head' }]);
    }
    expect(verifySession(tampered(unsealed.slice(0, -1).join('')), head).findings).toMatchObject([{ kind: 'head' }]);
    expect(wordsOf(verifySession(tampered(unsealed.join('')), { ...head, seq: 3 }))).toEqual([
      `the log never had the head ${head.seal} after event 3: some of what came before it is not what it was, or is gone`]);
    expect(verifySession(tampered(unsealed.join('')), head).findings).toEqual([]);
  });

  it('names an event that makes no sense after those before it', () => {
    const chmod = withCrc('{"seq":2,"time":"2026-12-01T00:00:00.000Z","actor":"eve","op":"chmod","path":"nowhere/x","mode":33188,"mtime":"1","crc":"');
    const [first] = wordsOf(verifySession(tampered([...lines.slice(0, 2), chmod].join(''))));
    expect(first).toMatch(/line 3: bad event \(the tree has no "nowhere\/x"\)/);
  });

  it('finds every stored content of which a bit is another', () => {
    const copy = tampered(log), pack = join(copy, 'blobs/000000.pack'), bytes = fs.readFileSync(pack);
    for (let i = 0; i < 10; i++) {
      const flipped = Buffer.from(bytes), at = bytes.indexOf(`new ${i}\n`);
      flipped[at] = (flipped[at] as number) ^ 1;
      fs.rmSync(pack);
      fs.writeFileSync(pack, flipped);
      const { findings } = verifySession(copy);
      expect(findings).toHaveLength(1);
      expect(findings[0]).toMatchObject({ kind: 'blob', words: expect.stringMatching(/^blob sha256:[0-9a-f]{64} is gone or damaged; event \d+ names it$/) as string });
    }
    fs.writeFileSync(pack, bytes);
    const name = fs.readdirSync(join(copy, 'blobs')).find((each) => each.length === 64) as string, large = join(copy, 'blobs', name);
    fs.chmodSync(large, 0o600);
    const whole = fs.readFileSync(large);
    whole[50_000] = 8;
    fs.writeFileSync(large, whole);
    expect(verifySession(copy).findings).toMatchObject([{ kind: 'blob', digest: `sha256:${name}` }]);
    fs.rmSync(join(copy, 'blobs'), { recursive: true });
    expect(verifySession(copy).findings).toHaveLength(11);
  });

  it('finds a checkpoint that tells another state than the events do', () => {
    const busy = join(scratch, 'busy'), overlay = Overlay.openSync({ root, session: busy });
    for (let i = 0; i < 600; i++) overlay.fs.writeFileSync(join(root, `k${i % 70}`), String(i));
    overlay.fs.readFileSync(join(root, 'f1'));
    overlay.fs.chmodSync(join(root, 'f2'), 0o600);
    overlay.closeSync();
    expect(verifySession(busy).findings).toEqual([]);
    const path = join(busy, 'checkpoint'), at = readCheckpoint(path), state = decodeState(readCheckpointData(path, at?.seq as number) as string);
    if (at === undefined || state === undefined) throw new Error('no checkpoint');
    const node = state.root.names?.get('k3') as { mode: number };
    node.mode = 0o100777;
    writeCheckpoint(path, at, encodeState(state));
    expect(wordsOf(verifySession(busy))).toEqual([expect.stringMatching(/^the checkpoint after event \d+ tells another state than the events do: "k3"/)]);
  });

  it('saves what comes before the damage as a session of its own', () => {
    const at = 20, copy = tampered(lines.with(at, 'nonsense\n').join('')), found = verifySession(copy), to = join(scratch, 'saved');
    expect(salvageSession(copy, to, found)).toBe(at - 1);
    expect(verifySession(to)).toMatchObject({ findings: [], lastSeq: at - 1 });
    const overlay = Overlay.openSync({ session: to });
    expect(overlay.fs.readFileSync(join(root, 'n0'), 'utf8')).toBe('new 0\n');
    expect(overlay.fs.existsSync(join(root, 'large'))).toBe(false);
    overlay.closeSync();
    expect(() => salvageSession(copy, to, found)).toThrow(expect.objectContaining({ code: 'ERR_NOT_A_SESSION' }));
    expect(() => verifySession(join(scratch, 'none'))).toThrow(expect.objectContaining({ code: 'ERR_NO_SESSION' }));
  });
});

/** What is found, or why not even that: a header that is none. */
function verifySessionOrError(directory: string): string[] {
  try {
    return wordsOf(verifySession(directory));
  } catch (error) {
    return [String(error)];
  }
}
