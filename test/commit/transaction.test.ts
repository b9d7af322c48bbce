import { describe, expect, it } from 'vitest';
import { transact } from '../../src/commit/transaction.ts';

describe('a transaction', () => {
  it('of nothing is done', async () => {
    const done = await transact({
      id: 'a', root: '/nowhere', steps: [], count: 0, reliances: [], guard: 'expectations', durability: 'flush',
    });
    expect(done.late).toEqual([]);
  });
});
