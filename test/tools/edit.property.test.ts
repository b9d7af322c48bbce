import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FsError, observationPolicy, type Edited } from '../../src/index.ts';
import { replaceText, tools, type Replacement } from '../../src/tools/index.ts';
import { withGround } from '../policy/ground.ts';
import { withTools } from './bench.ts';

/** Bytes that make trouble: endings of both kinds, marks, what is no UTF-8, and few letters, so that texts repeat. */
const piece = fc.constantFrom('a', 'b', 'ab', '\n', '\r\n', '\r', 'ü', '\ufeff', '$&').map((text) => Buffer.from(text));
const content = fc.array(fc.oneof({ weight: 6, arbitrary: piece }, fc.constantFrom(Buffer.of(0xff), Buffer.of(0xc3), Buffer.of(0x80))), { maxLength: 40 }).map((pieces) => Buffer.concat(pieces));
const text = fc.array(fc.constantFrom('a', 'b', '\n', '\r\n', 'ü', '$&'), { minLength: 1, maxLength: 4 }).map((parts) => parts.join(''));

/** What is made of the bytes; `undefined` where that is refused, in one of two ways. */
function attempt(before: Uint8Array, replacement: Replacement): Edited | undefined {
  try {
    return replaceText(before, replacement, 'a');
  } catch (error) {
    if (error instanceof FsError && /^FS_(?:EDIT_NOT_FOUND|AMBIGUOUS_EDIT)$/.test(error.code)) return undefined;
    throw error;
  }
}

describe('a text replaced', () => {
  it('leaves every byte outside the span, for any bytes and any text', () => {
    fc.assert(fc.property(content, text, fc.oneof(text, fc.constant('')), fc.boolean(), (before, old_string, new_string, replace_all) => {
      const edited = attempt(before, { old_string, new_string, replace_all });
      if (edited === undefined) return;
      // Going back splice by splice, only what the splices name may differ.
      let after = Buffer.from(edited.bytes), from = before.length, to = after.length;
      for (const [at, removed, added] of [...edited.splices].reverse()) {
        const tail = to - (at + added);
        expect(after.subarray(at + added, to).equals(before.subarray(from - tail, from))).toBe(true);
        from = from - tail - removed;
        to = at;
        const span = before.subarray(from, from + removed).toString('latin1').replace(/\r\n/g, '\n');
        expect(span).toBe(Buffer.from(old_string).toString('latin1').replace(/\r\n/g, '\n'));
        after = after.subarray(0, to);
      }
      expect(after.equals(before.subarray(0, from))).toBe(true);
      const total = edited.splices.reduce((sum, [, removed, added]) => sum + added - removed, before.length);
      expect(edited.bytes.length).toBe(total);
    }), { numRuns: 5000 });
  });

  it('is in the overlay what it is in memory; a failed edit changes nothing', () => withTools({ a: '' }, (kit, { overlay, at }) => {
    const { fs } = overlay.as('ann');
    fc.assert(fc.property(content, text, text, (before, old_string, new_string) => {
      fs.writeFileSync(at('a'), before);
      const answer = kit.edit.call({ file_path: 'a', old_string, new_string }), now = fs.readFileSync(at('a'));
      const wanted = before.includes(0) ? undefined : attempt(before, { old_string, new_string });
      expect(answer.isError).toBe(wanted === undefined);
      expect(now.equals(Buffer.from(wanted?.bytes ?? before))).toBe(true);
      expect(answer.data['version']).toBe(wanted && overlay.version('a'));
    }), { numRuns: 400 });
  }));
});

describe('several actors at one version', () => {
  it('one wins, the others are stale, over thousands of interleavings', () => withGround({ a: 'v0' }, ({ overlay }) => {
    overlay.use(observationPolicy());
    const kits = ['ann', 'bob', 'eve'].map((actor) => tools(overlay.as(actor)));
    const step = fc.tuple(fc.nat({ max: 2 }), fc.constantFrom('read', 'edit', 'write'));
    let version = 0;
    fc.assert(fc.property(fc.array(step, { minLength: 2, maxLength: 12 }), (steps) => {
      // What each has seen last, by our own count; an edit or write passes if and only if that is what is there.
      for (const kit of kits) kit.read.call({ file_path: 'a' });
      const seen = kits.map(() => version);
      for (const [who, what] of steps) {
        const kit = kits[who] as (typeof kits)[number], next = version + 1;
        if (what === 'read') {
          kit.read.call({ file_path: 'a' });
          seen[who] = version;
          continue;
        }
        const answer = what === 'edit' ? kit.edit.call({ file_path: 'a', old_string: `v${seen[who]}`, new_string: `v${next}` }) : kit.write.call({ file_path: 'a', content: `v${next}` });
        expect(answer.code).toBe(seen[who] === version ? undefined : 'FS_STALE_VERSION');
        if (!answer.isError) seen[who] = version = next;
      }
      expect(overlay.as('witness').fs.readFileSync(`${overlay.mountPoint}/a`, 'utf8')).toBe(`v${version}`);
    }), { numRuns: 1000 });
  }));
});
