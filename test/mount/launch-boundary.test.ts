import fs from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { CAN_MOUNT, Launcher } from './launcher.ts';

/** What only the lower holds: whoever gets to see it has got past the overlay. */
const SECRET = 'only in the lower';

/**
 * Attacks from inside a run on what it must not reach: the lower, the session, the device, the server. Each looks for a secret that
 * stands in the lower in place of what the overlay shows, and tries to leave a file there.
 */
describe.runIf(CAN_MOUNT).each(['root', 'user'] as const)('the boundary of a run as %s', (as) => {
  let launcher: Launcher;
  beforeAll(async () => {
    launcher = await Launcher.make(as);
    fs.writeFileSync(path.join(launcher.root, 'secret'), SECRET);
    const { uid, gid } = fs.statSync(launcher.root);
    fs.chownSync(path.join(launcher.root, 'secret'), uid, gid);
  });
  afterEach(async () => {
    const secret = fs.readFileSync(path.join(launcher.root, 'secret'), 'utf8');
    if (secret !== SECRET || fs.existsSync(path.join(launcher.root, 'escaped'))) throw new Error('an attack has changed the lower');
    await launcher.checkNothingLeft();
  });
  afterAll(() => { launcher.close(); });

  /** Runs a script in which the overlay's `secret` has been overwritten, so that the true one is the lower's. */
  const attack = async (script: string, ...options: string[]) =>
    launcher.run(as, options, ['sh', '-c', `echo overlaid >secret; R=$PWD\n${script}\ntrue`]);

  /** Ways to the lower: at the end of each, `secret` is read and `escaped` is written below the directory that was reached. */
  const reach = (ways: string): string =>
    `for d in ${ways}; do cat "$d/$R/secret" "$d/secret" 2>/dev/null; touch "$d/$R/escaped" "$d/escaped" 2>/dev/null; done; rm -f escaped /escaped`;

  it.each([
    ['the root of any process', reach('/proc/*/root /proc/*/task/*/root')],
    ['the working directory of any process', reach('/proc/*/cwd /proc/*/task/*/cwd')],
    ['a descriptor of any process', reach('/proc/*/fd/*')],
    ['the map files of init', reach('/proc/1/map_files/*')],
    ['taking the mount away', `cd /; umount "$R"; umount -l "$R"; umount -f "$R"; ${reach('.')}`],
    ['binding what lies below the mount', `cd /; mkdir -p /tmp/b.$$; mount --bind "\${R%/*}" /tmp/b.$$ && cat /tmp/b.$$/root/secret; rmdir /tmp/b.$$`],
    ['moving the mount', `cd /; mkdir -p /tmp/b.$$; mount --move "$R" /tmp/b.$$; ${reach('.')}; rmdir /tmp/b.$$`],
    ['remounting', `mount -o remount,bind "$R"; mount -o remount,ro "$R"; ${reach('.')}`],
    ['changing the root', `chroot / cat "$R/secret"; pivot_root . .; ${reach('.')}`],
  ])('keeps from the lower: %s', async (_, script) => {
    const { out, status } = await attack(script);
    expect(out).not.toContain(SECRET);
    expect(status).toBe(0);
  });

  it.each([
    ['taking the mount away', `umount "$R"; umount -l "$R"; cat "$R/secret"; touch "$R/escaped"`],
    ['a bind without what is mounted below', `mkdir -p /tmp/n.$$; mount --bind "\${R%/*}" /tmp/n.$$ && cat /tmp/n.$$/root/secret; touch /tmp/n.$$/root/escaped; mount --bind / /tmp/n.$$ && cat "/tmp/n.$$/$R/secret"`],
    ['a bind of the file system from above', 'mkdir -p /tmp/n.$$; for d in / /tmp; do mount --bind $d /tmp/n.$$ && cat /tmp/n.$$/$R/secret /tmp/n.$$/${R#/tmp/}/secret && umount /tmp/n.$$; done'],
    ['moving the mount', `mkdir -p /tmp/n.$$; mount --move "$R" /tmp/n.$$; cat "$R/secret"`],
    ['a new /proc', `mount -t proc proc /proc; for d in /proc/*/root /proc/*/cwd; do cat $d/$R/secret $d/secret; done`],
    ['a private propagation', `mount --make-rprivate /; umount -R "$R"; mount --make-rshared /; umount -l "$R"; cat "$R/secret"`],
    ['an overlay of the kernel', `mkdir -p /tmp/n.$$/u /tmp/n.$$/w /tmp/n.$$/m; mount -t overlay o -o lowerdir="\${R%/*}",upperdir=/tmp/n.$$/u,workdir=/tmp/n.$$/w /tmp/n.$$/m && cat /tmp/n.$$/m/root/secret`],
  ])('keeps from the lower, with all capabilities in a nested user namespace: %s', async (_, script) => {
    // Root may not map itself any more; it becomes somebody who may.
    const become = as === 'root' ? 'setpriv --reuid 4242 --regid 4242 --clear-groups --' : '';
    const { out } = await attack(
      `cat >/tmp/nested.$$ <<'END'\necho inside\n${script}\nEND\nexport R; cd /; ${become} unshare -Urmp --fork sh /tmp/nested.$$ 2>/dev/null; rm -rf /tmp/nested.$$`);
    expect(out).toContain('inside\n');
    // The overlay is what is read, as long as anything is.
    expect(out).not.toContain(SECRET);
  });

  it('gives root what it needs over files and nobody anything else, and no way to more', async () => {
    const { out } = await attack('grep -E "^(Cap|NoNewPrivs)" /proc/self/status');
    // chown, dac_override, fowner, fsetid, kill, setgid, setuid.
    const kept = as === 'root' ? '00000000000000fb' : '0000000000000000', none = '0'.repeat(16);
    expect(out).toMatch(new RegExp(`CapInh:\\s${none}\nCapPrm:\\s${kept}\nCapEff:\\s${kept}\nCapBnd:\\s00000000000000fb\nCapAmb:\\s${none}\n`));
    expect(out).toMatch(/NoNewPrivs:\s*1/);
  });

  it('has no way into other namespaces', async () => {
    const { out } = await attack('for n in mnt pid user; do nsenter --$n=/proc/1/ns/$n true && echo entered $n; done 2>/dev/null; nsenter -t 1 -a cat "$R/secret" 2>/dev/null');
    expect(out).toBe('');
  });

  it('makes no device nodes', async () => {
    const { out } = await attack('mknod /tmp/node.$$ b 254 0 2>/dev/null && echo made; mknod node b 254 0 2>/dev/null && cat node | head -c 1 | wc -c; rm -f /tmp/node.$$');
    expect(out).not.toContain('made');
    expect(out.trim()).toMatch(/^0?$/);
  });

  it('opens no file by its handle', async () => {
    const open = 'import ctypes, os, sys; c = ctypes.CDLL(None, use_errno=True); h = ctypes.create_string_buffer(bytes([8, 0, 0, 0, 1, 0, 0, 0]) + bytes(16)); ' +
      'm = os.open("/", os.O_RDONLY); r = c.open_by_handle_at(m, h, os.O_RDONLY); sys.stdout.write("EPERM" if r < 0 and ctypes.get_errno() == 1 else str(ctypes.get_errno()))';
    const { out } = await attack(`${PYTHON} -c '${open}'`);
    expect(out).toBe('EPERM');
  });

  it('cannot see, stop or trace the server and what belongs to it', async () => {
    const { out } = await attack('ps -eo args= | grep -v "^ps\\|^sh\\|^grep\\|^\\[" ; kill -9 1 2>/dev/null; kill -STOP 1; grep ^TracerPid /proc/self/status; cat /proc/1/environ /proc/1/maps 2>/dev/null | wc -c; echo alive');
    expect(out.trim().split('\n')).toEqual(['/usr/bin/cat', 'TracerPid:\t0', '0', 'alive']);
  });

  it('survives the end of all that the command can kill', async () => {
    const launched = launcher.start(as, [], ['sh', '-c', 'kill -9 -1; echo x >after; cat after']);
    launched.child.stdin?.end();
    const { signal, status } = await launched.ended;
    // sh(1) spares itself or not: kill(-1) does.
    expect([signal, status]).toEqual([null, 0]);
  });

  it('finds the session empty, and cannot write to it', async () => {
    const session = path.join(launcher.scratch, 'sessions/own');
    const { out } = await attack(
      `cd /; S=${session}; ls -A $S; touch $S/x 2>/dev/null && echo written; cat $S/log.jsonl; rm -rf $S; mv $S $S.moved; umount $S; true`, '--session', session);
    expect(out).not.toContain('log');
    expect(out).not.toContain('written');
    expect(fs.existsSync(path.join(session, 'log.jsonl'))).toBe(true);
  });

  it('cannot abort the connection', async () => {
    const { out } = await attack('ls -A /sys/fs/fuse/connections 2>/dev/null; for f in /sys/fs/fuse/connections/*/abort; do echo 1 >$f; done 2>/dev/null; cat secret');
    expect(out).toBe('overlaid\n');
  });

  it('inherits no descriptor beyond the standard ones', async () => {
    const holder = fs.openSync(launcher.root, 'r'), file = fs.openSync(path.join(launcher.root, 'secret'), 'r+');
    try {
      const { out } = await launcher.run(as, [], ['sh', '-c', 'for f in /proc/self/fd/*; do readlink $f; cat $f/secret $f 2>/dev/null </dev/null; done'],
        { inherited: [holder, file] });
      expect(out).not.toContain(SECRET);
      expect(out).not.toContain('/secret');
    } finally {
      fs.closeSync(holder);
      fs.closeSync(file);
    }
  });
});

/** Where the test finds one that is there for everybody. */
const PYTHON = ['/usr/bin/python3', '/usr/local/bin/python3'].find((name) => fs.existsSync(name)) ?? 'python3';
