import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { VERBS } from '../../src/cli/verbs.ts';
import { LOG_SCHEMA } from '../../src/index.ts';
import { palimpsest, shell } from './command.ts';

const verbs = Object.values(VERBS).flat();

describe('palimpsest', () => {
  it('prints its version', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    for (const flag of ['--version', '-V']) expect(palimpsest([flag])).toMatchObject({ status: 0, stdout: `${version}\n`, stderr: '' });
  });

  it('lists every verb, as help and as what to say instead of nothing', () => {
    const help = palimpsest(['--help']);
    expect(help).toMatchObject({ status: 0, stderr: '' });
    for (const { name, summary } of verbs) expect(help.stdout).toMatch(new RegExp(`^ +${name} +${summary}$`, 'm'));
    expect(palimpsest([])).toMatchObject({ status: 2, stdout: '', stderr: help.stdout });
  });

  it.each(verbs.map(({ name }) => name))('has a page with examples for %s', (name) => {
    const page = palimpsest([name, '--help']);
    expect(page).toMatchObject({ status: 0, stderr: '' });
    for (const heading of ['NAME', 'SYNOPSIS', 'DESCRIPTION', 'OPTIONS', 'EXAMPLES', 'EXIT STATUS']) {
      expect(page.stdout).toMatch(new RegExp(`^${heading}$`, 'm'));
    }
    expect(page.stdout).toMatch(new RegExp(`^    palimpsest ${name} `, 'm'));
    for (const line of page.stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(100);
    expect(palimpsest(['help', name])).toEqual(page);
  });

  it.each([
    ['an unknown verb', ['stat'], "unknown command 'stat'"],
    ['an unknown option', ['schema', '--color'], "unknown option '--color'"],
    ['an argument too many', ['schema', 'x'], 'too many arguments'],
  ])('refuses %s with exit status 2', (_, args: string[], words) => {
    const { status, stdout, stderr } = palimpsest(args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain(`palimpsest: ${words}`);
  });

  it('says in one line what keeps it from writing', () => {
    expect(shell('palimpsest schema > /dev/full')).toMatchObject({
      status: 1, stderr: 'palimpsest: ENOSPC: no space left on device, write\n',
    });
  });

  it('prints the schema of the log', () => {
    expect(JSON.parse(palimpsest(['schema']).stdout)).toEqual(LOG_SCHEMA);
  });
});
