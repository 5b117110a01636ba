// Checks a receipt by docs/reference/wire-format.md: that a record of the ledger holds what was sent.

import { blake3 } from './blake3.mjs'

const node = (prefix, ...parts) => blake3(Buffer.concat([Buffer.from([prefix]), ...parts]))
const canonical = (flat) => JSON.stringify(Object.fromEntries(Object.entries(flat).sort(([a], [b]) => (a < b ? -1 : 1))))

// The root of the tree in which `path` leads up from the leaf.
function rootOf({ leaf, index, path, header }) {
  const left = [...path]
  let hash = node(0, Buffer.from(leaf))
  for (let place = index, size = header.size; size > 1; place >>= 1, size = (size + 1) >> 1) {
    if ((place ^ 1) >= size) continue // the last of an odd number goes up as it is
    if (!left.length) throw new Error('the path is too short')
    const [own, beside] = [hash, left.shift()].map((hex) => Buffer.from(hex, 'hex'))
    hash = place % 2 ? node(1, beside, own) : node(1, own, beside)
  }
  if (left.length) throw new Error('the path is too long')
  return hash
}

// `sent` has the round, participant, contribution and signature as they were sent; `hash` is the ledger's for the round.
export function check(receipt, sent, hash) {
  const { header } = receipt
  const leaf = JSON.parse(receipt.leaf)
  const told = { round: header.round, ...leaf }
  for (const name of Object.keys(sent)) {
    if (told[name] !== sent[name]) throw new Error(`${name} is ${told[name]}, ${sent[name]} was sent`)
  }
  if (!(receipt.index >= 0 && receipt.index < header.size)) throw new Error('the leaf is outside of the tree')
  if (rootOf(receipt) !== header.root) throw new Error('the path does not lead to the root')
  if (blake3(Buffer.from(canonical(header))) !== receipt.hash) throw new Error('the hash is not that of the header')
  if (receipt.hash !== hash) throw new Error('the ledger has another record')
  return leaf.refused ?? null
}
