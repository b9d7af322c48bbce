import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventJson, glance, Overlay, removeSession, SessionLog, type Event } from '../../src/index.ts';
import { lowerWith, opened } from './ground.ts';

/** A session in a directory over a root with a file, still open, that has read, missed and written. */
function written(): { root: string; session: string; overlay: Overlay } {
  const root = lowerWith({ 'a.txt': 'one', 'd/b': 'two' }), session = path.join(root, '../session');
  const overlay = opened({ root, session });
  overlay.fs.readFileSync(path.join(root, 'a.txt'));
  overlay.fs.existsSync(path.join(root, 'none'));
  overlay.fs.writeFileSync(path.join(root, 'a.txt'), 'three');
  return { root, session, overlay };
}

function logOf(session: string): SessionLog {
  const log = SessionLog.openSync(session);
  onTestFinished(() => log.close());
  return log;
}

const textOf = (session: string): string => fs.readFileSync(path.join(session, 'log.jsonl'), 'utf8');

describe('a session opened from its directory alone', () => {
  it('takes the root from the log', async () => {
    const { root, session, overlay } = written();
    await overlay.close();
    const again = opened({ session });
    expect(again.fs.readFileSync(path.join(root, 'a.txt'), 'utf8')).toBe('three');
    expect(again.changes()).toMatchObject([{ kind: 'update', path: 'a.txt' }]);
  });

  it('takes several roots from the log', async () => {
    const root = lowerWith({ 'top/a': 'x', 'bottom/b': 'y' }), session = path.join(root, '../session');
    await opened({ lower: [path.join(root, 'top'), path.join(root, 'bottom')], session }).close();
    expect(opened({ session }).fs.readdirSync(path.join(root, 'top'))).toEqual(['a', 'b']);
  });

  it('is refused where there is none, or none about a directory', () => {
    const root = lowerWith({}), session = path.join(root, '../session');
    expect(() => Overlay.openSync({ session })).toThrow(/no session is there/);
    opened({ lower: fs, session }).closeSync();
    expect(() => Overlay.openSync({ session })).toThrow(/its lower has to be given/);
  });
});

describe('a read-only overlay', () => {
  it('reads beside the live writer, and records nothing', async () => {
    const { root, session, overlay } = written();
    await overlay.flush();
    const before = textOf(session);
    const reader = opened({ session, readOnly: true });
    expect(reader.fs.readFileSync(path.join(root, 'a.txt'), 'utf8')).toBe('three');
    expect(reader.fs.readdirSync(root)).toEqual(['a.txt', 'd']);
    expect(reader.fs.existsSync(path.join(root, 'none'))).toBe(false);
    expect(reader.fs.statSync(path.join(root, 'd')).isDirectory()).toBe(true);
    expect(reader.changes()).toEqual(overlay.changes());
    expect(reader.head).toEqual(overlay.head);
    reader.closeSync();
    expect(textOf(session)).toBe(before);
    overlay.mark('still writing');
  });

  it('refuses every change with EROFS', async () => {
    const { root, session, overlay } = written();
    await overlay.close();
    const before = textOf(session), reader = opened({ session, readOnly: true });
    const at = (name: string): string => path.join(root, name);
    for (const change of [
      () => reader.fs.writeFileSync(at('a.txt'), ''), () => reader.fs.writeFileSync(at('new'), ''),
      () => reader.fs.appendFileSync(at('d/b'), 'x'), () => reader.fs.rmSync(at('d'), { recursive: true }),
      () => reader.fs.mkdirSync(at('e')), () => reader.fs.renameSync(at('d'), at('e')), () => reader.fs.chmodSync(at('a.txt'), 0o600),
      () => reader.fs.symlinkSync('a.txt', at('l')), () => reader.fs.truncateSync(at('a.txt')),
      () => { reader.mark('x'); }, () => { reader.discard(); },
    ]) expect(change).toThrow(expect.objectContaining({ code: 'EROFS' }));
    expect(reader.changes()).toMatchObject([{ kind: 'update', path: 'a.txt' }]);
    await reader.flush();
    await reader.close();
    expect(textOf(session)).toBe(before);
    expect(fs.readdirSync(session)).not.toContain('lock');
  });

  it('is of a session that exists', () => {
    const root = lowerWith({});
    expect(() => Overlay.openSync({ root, readOnly: true })).toThrow(/"session" has to be given/);
    expect(() => Overlay.openSync({ root, session: path.join(root, '../none'), readOnly: true })).toThrow(/no session is there/);
    expect(fs.existsSync(path.join(root, '../none'))).toBe(false);
  });
});

describe('the log of a session', () => {
  it('is read without the root', async () => {
    const { root, session, overlay } = written();
    const expected = [...overlay.events()];
    overlay.as('other').fs.existsSync(path.join(root, 'gone'));
    await overlay.close();
    fs.rmSync(root, { recursive: true });
    const log = logOf(session);
    expect(log.header).toMatchObject({ palimpsest: 1, root });
    expect([...log.events({ actor: 'main', to: expected.length })]).toEqual(expected);
    expect([...log.events({ op: 'miss', path: 'no*' })].map(({ path: missed }) => missed)).toEqual(['none']);
    expect([...log.observations()].map(({ actor, path: seen, observation }) => `${actor} ${seen} ${observation.kind}`))
      .toEqual(['main a.txt present', 'main none absent', 'other gone absent']);
    expect(() => log.events({ pth: 'x' } as never).next()).toThrow(/unknown option "pth"/);
  });

  it('is followed while another writes it', async () => {
    const { root, session, overlay } = written();
    await overlay.flush();
    const log = logOf(session), seen: Event[] = [];
    const stop = new AbortController();
    for await (const batch of log.follow({ op: ['miss', 'mark'] }, { signal: stop.signal })) {
      seen.push(...batch);
      if (seen.length === 1) {
        overlay.fs.existsSync(path.join(root, 'later'));
        overlay.mark('end');
        await overlay.flush();
      }
      if (seen.at(-1)?.op === 'mark') stop.abort();
    }
    expect(seen.map(({ op }) => op)).toEqual(['miss', 'miss', 'mark']);
  });

  it('gives events as the JSON that the log has', () => {
    const { root, session, overlay } = written();
    overlay.fs.writeFileSync(Buffer.concat([Buffer.from(root), Buffer.from('/\xff', 'latin1')]), '');
    overlay.closeSync();
    const lines = textOf(session).trimEnd().split('\n').slice(1);
    expect([...logOf(session).events()].map((event) => eventJson(event))).toEqual(lines);
    expect(lines.join('')).toContain('"path64":"/w=="');
  });
});

describe('a glance at a session', () => {
  it('tells root, last event and who has it open', async () => {
    const { root, session, overlay } = written();
    await overlay.flush();
    expect(glance(session)).toMatchObject({
      directory: session, header: { root }, lastSeq: overlay.head.seq, owner: { pid: process.pid, state: 'live' },
      logBytes: fs.statSync(path.join(session, 'log.jsonl')).size,
    });
    await overlay.close();
    expect(glance(session).owner).toBeUndefined();
  });

  it('finds the last event behind a long line, and none in a new log or a damaged end', () => {
    const root = lowerWith({}), session = path.join(root, '../session'), overlay = opened({ root, session });
    expect(glance(session).lastSeq).toBe(0);
    overlay.mark('x'.repeat(200_000));
    overlay.closeSync();
    expect(glance(session).lastSeq).toBe(2);
    fs.appendFileSync(path.join(session, 'log.jsonl'), 'nonsense\n');
    expect(glance(session).lastSeq).toBeUndefined();
    expect(() => glance(path.join(root, 'none'))).toThrow(/no session is there/);
  });
});

describe('removing a session', () => {
  it('takes all of it, damaged or not, and nothing else', async () => {
    const { session, overlay } = written();
    await overlay.close();
    fs.writeFileSync(path.join(session, 'log.jsonl'), 'nonsense');
    // What a server that was killed has left there.
    fs.writeFileSync(path.join(session, 'control'), '');
    removeSession(session);
    expect(fs.existsSync(session)).toBe(false);
    expect(() => removeSession(session)).toThrow(/no session is there/);
  });

  it('is refused while a process writes it, and leaves the files of others', async () => {
    const { session, overlay } = written();
    expect(() => removeSession(session)).toThrow(new RegExp(`open in process ${process.pid}`));
    overlay.mark('unharmed');
    await overlay.close();
    fs.writeFileSync(path.join(session, 'mine'), '');
    expect(() => removeSession(session)).toThrow(/other files/);
    expect(fs.readdirSync(session)).toEqual(['mine']);
  });
});
