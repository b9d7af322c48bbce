import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Overlay } from '../../src/index.ts';
import { tools } from '../../src/tools/index.ts';
import { withGround } from '../policy/ground.ts';
import { said, withTools } from './bench.ts';

describe('bad input', () => {
  it.each([
    ['read', {}, 'read: "file_path" is missing'],
    ['read', { file_path: 7 }, 'read: "file_path" has to be a string'],
    ['read', { file_path: 'a', offset: 0 }, 'read: "offset" has to be at least 1'],
    ['read', { file_path: 'a', offset: 1.5 }, 'read: "offset" has to be a whole number'],
    ['read', null, 'read: the input has to be an object'],
    ['read', { path: 'a' }, 'read: "file_path" is missing'],
    ['write', { file_path: 'a', content: 'x', mode: 1 }, 'write: there is no "mode"; there are file_path, content'],
    ['edit', { file_path: 'a', old_string: 'x', new_string: 'y', replace_all: 'yes' }, 'edit: "replace_all" has to be true or false'],
    ['multiEdit', { file_path: 'a', edits: [] }, 'multiEdit: "edits" has to be a list of at least 1'],
    ['multiEdit', { file_path: 'a', edits: [{ old_string: 'x' }] }, 'multiEdit: "edits[0].new_string" is missing'],
    ['grep', { pattern: 'x', output_mode: 'lines' }, 'grep: "output_mode" has to be one of content, files_with_matches, count'],
  ])('%s %j is named', (name, input, words) => withTools({ a: 'x' }, (kit, { text }) => {
    expect(said(kit.call(name, input))).toEqual(['TOOL_BAD_INPUT', words]);
    expect(text('a')).toBe('x');
  }));

  it('an unknown tool is said to be none', () => withTools({}, (kit) => {
    expect(kit.call('rm', {})).toMatchObject({ isError: true, code: 'TOOL_UNKNOWN', text: expect.stringMatching(/^there is no tool "rm"; there are read, write, /) });
    expect(kit.call('constructor', {}).code).toBe('TOOL_UNKNOWN');
  }));

  it('is what the schemas refuse, and what they accept is not', () => withTools({ a: 'x' }, (kit) => {
    const ajv = new Ajv2020();
    fc.assert(fc.property(fc.constantFrom(...kit.all), fc.dictionary(fc.constantFrom('file_path', 'path', 'pattern', 'content', 'offset', 'limit', 'from', 'to', 'input', 'x'),
      fc.oneof(fc.constantFrom('a', 'b/c', ''), fc.integer({ min: -2, max: 5 }), fc.boolean(), fc.constant(null))), (tool, input) => {
      const isValid = ajv.validate({ ...tool.inputSchema }, input), { code } = tool.call(input);
      expect(isValid || code === 'TOOL_BAD_INPUT').toBe(true);
    }), { numRuns: 300 });
    expect(kit.all.map(({ name }) => name).length).toBe(12);
  }));

  it('leads to no errno, no stack and no path of the machine, whatever the tool and path', () => withTools({ a: 'x', 'd/e': '' }, (kit, { root, overlay, at }) => {
    overlay.fs.symlinkSync('loop', at('loop'));
    const paths = ['a', 'none', 'd', 'd/e/f', '/etc/passwd', '../../x', 'loop', 'n'.repeat(300), 'a\0b', '', '/', root, 'a/', 'none/', `${'p/'.repeat(2100)}x`];
    for (const path of paths) {
      for (const tool of kit.all) {
        const input = { file_path: path, path, content: 'y', old_string: 'q', new_string: 'z', pattern: 'q', from: path, to: path, input: `*** Begin Patch\n*** Delete File: ${path}\n*** End Patch`,
          edits: [{ old_string: 'q', new_string: '' }], command: 'str_replace', old_str: 'q' };
        const own = Object.fromEntries(Object.entries(input).filter(([name]) => Object.hasOwn(tool.inputSchema.properties, name)));
        const { isError, code, text } = tool.call(tool.name === 'glob' ? { pattern: '*', path } : own);
        const words = path === '' ? text : text.replaceAll(path, '');
        expect(isError ? code : 'FS_', `${tool.name} ${path}: ${text}`).toMatch(/^(?:FS|TOOL)_/);
        expect(isError ? words : '', `${tool.name} ${path}`).not.toMatch(/\bE[A-Z]{4,}\b|\n {4}at |palimpsest-policy|\/proc\/|the tool failed/);
      }
    }
    expect(overlay.changes().filter(({ path }) => path !== 'loop' && path !== 'none' && path !== 'a')).toEqual([]);
  }));

  it('a session that cannot be written is a refusal with a code', () => withGround({ a: 'x' }, ({ overlay }) => {
    expect(tools(overlay).write.call({ file_path: 'b', content: 'x'.repeat(5000) })).toMatchObject({ isError: true, code: 'FS_TOO_LARGE', text: 'cannot write "b": too large' });
  }, { limits: { blobBytes: 100 } }));

  it('options of tools are checked', () => withGround({}, ({ overlay }: { overlay: Overlay }) => {
    expect(() => tools(overlay, { limit: 1 } as never)).toThrow(/unknown option "limit"/);
    expect(() => tools(overlay, { limits: { lines: 0 } })).toThrow(/limits.lines/);
  }));
});
