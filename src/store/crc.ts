/**
 * crc32 as zlib has it, eight bytes a step. Lines are about 200 bytes, where the call into zlib costs as much again as
 * the sum itself; here a line takes about 0.1 µs. Bulk bytes go to `zlib.crc32`.
 */
const TABLES = makeTables();

function makeTables(): readonly Int32Array[] {
  const tables = Array.from({ length: 8 }, () => new Int32Array(256));
  for (let byte = 0; byte < 256; byte++) {
    let sum = byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum & 1) === 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
    (tables[0] as Int32Array)[byte] = sum;
  }
  const first = tables[0] as Int32Array;
  for (let step = 1; step < 8; step++) {
    const before = tables[step - 1] as Int32Array, table = tables[step] as Int32Array;
    for (let byte = 0; byte < 256; byte++) {
      const sum = before[byte] as number;
      table[byte] = (sum >>> 8) ^ (first[sum & 255] as number);
    }
  }
  return tables;
}

const [T0, T1, T2, T3, T4, T5, T6, T7] = TABLES as [
  Int32Array, Int32Array, Int32Array, Int32Array, Int32Array, Int32Array, Int32Array, Int32Array];

/** crc32 of `bytes[start … end)`, unsigned. */
export function crc32(bytes: Uint8Array, start: number, end: number): number {
  let sum = -1, at = start;
  for (const last = end - 8; at <= last; at += 8) {
    sum ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    sum = T7[sum & 255]! ^ T6[(sum >>> 8) & 255]! ^ T5[(sum >>> 16) & 255]! ^ T4[sum >>> 24]! ^
      T3[bytes[at + 4]!]! ^ T2[bytes[at + 5]!]! ^ T1[bytes[at + 6]!]! ^ T0[bytes[at + 7]!]!;
  }
  for (; at < end; at++) sum = T0[(sum ^ bytes[at]!) & 255]! ^ (sum >>> 8);
  return ~sum >>> 0;
}
