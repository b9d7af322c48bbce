import nodeFs from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Refusal } from '../../src/core/refusal.ts';
import { createNodeFs } from '../../src/overlay/node/fs.ts';
import { realSystem } from '../support/real-system.ts';
import { inTemporary } from './twin.ts';

const fs = createNodeFs(realSystem());
type Members = Readonly<Record<string, unknown>>;

function kinds(object: object): Record<string, string> {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, typeof value]));
}

describe('the shape of the face', () => {
  it('has every member of node:fs and no other', () => {
    // As `require` gives it: the module's namespace has a default besides.
    expect(kinds(fs)).toEqual(kinds(nodeFs));
    expect(kinds(fs.promises)).toEqual(kinds(nodeFs.promises));
    expect(typeof fs.realpath.native).toBe('function');
    expect(typeof fs.realpathSync.native).toBe('function');
  });

  it('names its functions as node does', () => {
    const misnamed = (object: object) => Object.entries(object as Members).filter(([key, value]) =>
      typeof value === 'function' && value.name !== key && !/^[A-Z_]/.test(key)).map(([key]) => key);
    expect(misnamed(fs)).toEqual([]);
    expect(misnamed(fs.promises)).toEqual([]);
  });

  it('gives what is an instance of node\'s classes', () => {
    expect(fs.statSync('/')).toBeInstanceOf(nodeFs.Stats);
    expect(fs.statSync('/')).toBeInstanceOf(fs.Stats);
    expect(fs.readdirSync('/', { withFileTypes: true })[0]).toBeInstanceOf(nodeFs.Dirent);
  });

  it('makes the Dates of a Stats when asked, and always the same', () => {
    const stats = fs.statSync('/'), real = nodeFs.statSync('/');
    expect(stats.mtime).toBe(stats.mtime);
    expect([stats.mtime, stats.ctime, stats.birthtime]).toEqual([real.mtime, real.ctime, real.birthtime]);
    expect(Object.keys(JSON.parse(JSON.stringify(stats)) as object).sort()).toEqual(Object.keys(real).sort());
    expect(stats).toEqual(fs.statSync('/'));
  });

  it('tells times to the last bit as node does', () => inTemporary((dir) => {
    const path = join(dir, 'file');
    nodeFs.writeFileSync(path, '');
    for (const seconds of [0, 0.001, 1, 1e9 + 0.123457, 2 ** 31, 2 ** 32 + 0.5, 4e9, '-0.5', '-1', '-40691.355', '-1e9']) {
      nodeFs.utimesSync(path, seconds, seconds);
      expect(fs.statSync(path).mtimeMs).toBe(nodeFs.statSync(path).mtimeMs);
      fs.utimesSync(path, seconds, seconds);
      const set = nodeFs.statSync(path, { bigint: true }).mtimeNs;
      nodeFs.utimesSync(path, seconds, seconds);
      expect(set).toBe(nodeFs.statSync(path, { bigint: true }).mtimeNs);
    }
  }));
});

describe('callbacks', () => {
  it('come in a later turn, after promises, in the order of the calls', () => inTemporary(async (dir) => {
    const order: string[] = [];
    await new Promise<void>((resolve) => {
      fs.writeFile(join(dir, 'a'), 'x', () => order.push('write'));
      fs.stat(join(dir, 'nothing'), () => order.push('stat'));
      fs.readFile(join(dir, 'a'), () => {
        order.push('read');
        resolve();
      });
      process.nextTick(() => order.push('tick'));
      void Promise.resolve().then(() => order.push('promise'));
      order.push('now');
    });
    expect(order.slice(0, 3).sort()).toEqual(['now', 'promise', 'tick']);
    expect(order.slice(3)).toEqual(['write', 'stat', 'read']);
  }));

  it('do their work when they are called', () => inTemporary((dir) => {
    fs.mkdir(join(dir, 'made'), () => {});
    fs.writeFile(join(dir, 'made/file'), 'x', () => {});
    void fs.promises.appendFile(join(dir, 'made/file'), 'y');
    expect(fs.readFileSync(join(dir, 'made/file'), 'utf8')).toBe('xy');
  }));

  it('are missed by name, before anything is done', () => inTemporary((dir) => {
    const mkdir = fs.mkdir as unknown as (path: string) => void;
    expect(() => mkdir(join(dir, 'made'))).toThrow('The "cb" argument must be of type function. Received undefined');
    expect(fs.existsSync(join(dir, 'made'))).toBe(false);
  }));

  it('get one argument where there is no result', async () => {
    const seen = await new Promise<unknown[]>((resolve) => {
      fs.access('/', (...results: unknown[]) => resolve(results));
    });
    expect(seen).toEqual([null]);
  });

  it('promisify as those of node do', () => inTemporary(async (dir) => {
    const fd = fs.openSync(join(dir, 'file'), 'w+'), buffer = Buffer.from('bytes');
    expect(await promisify(fs.write)(fd, buffer, 0, 5, 0)).toEqual({ bytesWritten: 5, buffer });
    expect(await promisify(fs.read)(fd, Buffer.alloc(5), 0, 5, 0)).toEqual({ bytesRead: 5, buffer });
    expect(await promisify(fs.writev)(fd, [buffer])).toEqual({ bytesWritten: 5, buffer: [buffer] });
    expect(await promisify(fs.readv)(fd, [Buffer.alloc(5)], 0)).toEqual({ bytesRead: 5, buffers: [buffer] });
    expect(await promisify(fs.exists)(join(dir, 'file'))).toBe(true);
    fs.closeSync(fd);
  }));
});

describe('promises', () => {
  it('let others have a turn, however many come after another', async () => {
    const others = { turn: false };
    setImmediate(() => {
      others.turn = true;
    });
    for (let i = 0; i < 10_000 && !others.turn; i++) await fs.promises.access('/');
    expect(others.turn).toBe(true);
  });

  it('let others have a turn where every one is refused', async () => {
    const others = { turn: false };
    setImmediate(() => {
      others.turn = true;
    });
    for (let i = 0; i < 10_000 && !others.turn; i++) await fs.promises.access('/nothing/here').catch(() => {});
    expect(others.turn).toBe(true);
  });

  it('reject for arguments that the other faces throw for', async () => {
    await expect(fs.promises.stat(7 as unknown as string)).rejects.toThrow('The "path" argument must be of type string');
  });
});

describe('signals', () => {
  it('stop a read and a write that have not come to their end', () => inTemporary(async (dir) => {
    const path = join(dir, 'file');
    fs.writeFileSync(path, 'before');
    const later = () => {
      const controller = new AbortController();
      process.nextTick(() => controller.abort());
      return controller.signal;
    };
    await expect(fs.promises.readFile(path, { signal: later() })).rejects.toThrow('The operation was aborted');
    await expect(fs.promises.writeFile(path, 'after', { signal: later(), flag: 'a' })).rejects.toMatchObject({ name: 'AbortError', code: 'ABORT_ERR' });
    await delay(5);
    expect(fs.readFileSync(path, 'utf8')).toBe('before');
  }));

  it('are refused before anything is done where they were aborted already', () => inTemporary(async (dir) => {
    await expect(fs.promises.writeFile(join(dir, 'file'), 'x', { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' });
    expect(fs.existsSync(join(dir, 'file'))).toBe(false);
  }));
});

describe('refusals', () => {
  const refusing = createNodeFs({
    ...realSystem(),
    unlink() {
      throw new Refusal('EPERM', { fsCode: 'FS_NOT_OBSERVED', reason: 'read it first' });
    },
    chmod() {
      throw new TypeError('a bug');
    },
  });

  it('carry their FS_ code and their reason beside what node tells', () => {
    expect(() => refusing.unlinkSync('x')).toThrow(expect.objectContaining({
      message: 'EPERM: operation not permitted, unlink \'x\'', code: 'EPERM', errno: -1, syscall: 'unlink', path: 'x',
      fsCode: 'FS_NOT_OBSERVED', reason: 'read it first',
    }));
  });

  it('are not made of bugs, which are thrown as they are', () => {
    expect(() => refusing.chmodSync('x', 0)).toThrow(TypeError);
    expect(() => refusing.chmod('x', 0, () => {})).toThrow('a bug');
  });
});
