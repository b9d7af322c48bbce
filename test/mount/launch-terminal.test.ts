import { spawn } from 'node:child_process';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { CAN_MOUNT, descendants, Launcher } from './launcher.ts';

/** Keys, as a terminal sends them. */
const CTRL_C = '\u0003', CTRL_Z = '\u001A', CTRL_BACKSLASH = '\u001C';

/**
 * A terminal with something running in it: script(1) makes one and passes on what is typed. Its shell becomes the command: one that
 * waited, as dash does, would die of the keys itself.
 */
interface Terminal {
  type(keys: string): void;
  /** Resolved when this text has appeared since the last time. */
  shows(text: string): Promise<void>;
  readonly ended: Promise<number | null>;
}

/** Words as a shell reads them. */
function quoted(line: readonly string[]): string {
  return line.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
}

function terminal(line: readonly string[], cwd: string): Terminal {
  const child = spawn('script', ['-qec', `exec ${quoted(line)}`, '/dev/null'], { cwd, env: { ...process.env, TERM: 'dumb' }, stdio: ['pipe', 'pipe', 'inherit'] });
  let screen = '', from = 0;
  const waiting = new Set<() => void>();
  child.stdout.on('data', (chunk) => {
    screen += String(chunk);
    for (const look of waiting) look();
  });
  const ended = new Promise<number | null>((resolve) => { child.once('close', resolve); });
  return {
    type: (keys) => child.stdin.write(keys),
    shows: async (text) => new Promise((resolve, reject) => {
      const look = (): void => {
        const at = screen.indexOf(text, from);
        if (at < 0) return;
        from = at + text.length;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
      void ended.then(() => reject(new Error(`ended without ${text}: ${screen}`)));
    }),
    ended,
  };
}

describe.runIf(CAN_MOUNT).each(['root', 'user'] as const)('a run in a terminal as %s', (as) => {
  let launcher: Launcher;
  beforeAll(async () => { launcher = await Launcher.make(as); });
  afterEach(async () => launcher.checkNothingLeft());
  afterAll(() => { launcher.close(); });

  const run = (script: string): string[] => launcher.line(as, [], ['sh', '-c', script]);

  it('is in the terminal itself', async () => {
    const screen = terminal(run('test -t 0 && test -t 1 && test -t 2 && tty && stty size >/dev/null && echo at home'), launcher.root);
    await screen.shows('/dev/pts/');
    await screen.shows('at home');
    expect(await screen.ended).toBe(0);
  });

  it.each([['INT', CTRL_C], ['QUIT', CTRL_BACKSLASH]])('hands SIG%s from the keyboard to the command alone, and once', async (name, key) => {
    const screen = terminal(run(`n=0; trap 'n=$((n+1))' ${name}; echo ready; sleep 1; sleep 0.3; echo got $n; exit 9`), launcher.root);
    await screen.shows('ready');
    screen.type(key);
    await screen.shows('got 1');
    expect(await screen.ended).toBe(9);
  });

  it('dies of Ctrl-C as the command does', async () => {
    const screen = terminal(run('echo ready; exec sleep 100'), launcher.root);
    await screen.shows('ready');
    screen.type(CTRL_C);
    expect(await screen.ended).toBe(130);
  });

  it('stops with the command at Ctrl-Z, and goes on with it', async () => {
    const screen = terminal(['bash', '--norc', '--noprofile', '-i'], launcher.root);
    await screen.shows('# ');
    screen.type(`${quoted(run('echo rea""dy; read line; cat file; echo "<$line>"; exit 7'))}\n`);
    await screen.shows('ready');
    screen.type(CTRL_Z);
    await screen.shows('Stopped');
    screen.type('fg\n');
    await screen.shows('run');
    screen.type('typed later\n');
    await screen.shows('<typed later>');
    screen.type('echo status "$?"\n');
    await screen.shows('status 7');
    screen.type('exit 3\n');
    expect(await screen.ended).toBe(3);
  });

  it('stops when the command stops itself', async () => {
    const screen = terminal(['bash', '--norc', '--noprofile', '-i'], launcher.root);
    await screen.shows('# ');
    screen.type(`${quoted(run('kill -STOP $$; echo go""ing on'))}\n`);
    await screen.shows('Stopped');
    screen.type('fg\n');
    await screen.shows('going on');
    screen.type('exit 3\n');
    expect(await screen.ended).toBe(3);
  });

  it('passes on what is sent to it alone, and waits for the command', async () => {
    const launched = launcher.start(as, [], ['sh', '-c', 'trap "echo term; exit 5" TERM; trap "echo hup" HUP; trap "echo usr1" USR1; trap "echo int" INT; echo ready >&2; while :; do sleep 0.05; done']);
    await launched.said('ready');
    for (const [signal, word] of [['SIGHUP', 'hup'], ['SIGUSR1', 'usr1'], ['SIGINT', 'int'], ['SIGTERM', 'term']] as const) {
      launched.child.kill(signal);
      await expect.poll(() => launched.heard(), { timeout: 5000 }).toContain(word);
    }
    expect(await launched.ended).toMatchObject({ status: 5, out: 'hup\nusr1\nint\nterm\n' });
  });

  it('is not left waiting by a terminal that goes away', async () => {
    const screen = spawn('script', ['-qec', `exec ${quoted(run('echo ready; exec sleep 1000'))}`, '/dev/null'], { cwd: launcher.root });
    await new Promise((resolve) => screen.stdout.once('data', resolve));
    expect(descendants(screen.pid ?? 0, 'nothing').length).toBeGreaterThan(0);
    screen.kill('SIGKILL');
    await launcher.checkNothingLeft();
  });
});
