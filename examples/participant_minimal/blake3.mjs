// BLAKE3-256 of some bytes, as hexadecimal: https://github.com/BLAKE3-team/BLAKE3-specs, section 2.

const IV = Uint32Array.of(
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19)
const PERMUTATION = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]
const CHUNK_START = 1, CHUNK_END = 2, PARENT = 4, ROOT = 8
const CHUNK = 1024, BLOCK = 64

export function blake3(bytes) {
  const words = compress({ ...node(bytes, 0), root: ROOT })
  return Buffer.from(words.buffer, 0, 32).toString('hex')
}

// The last compression of the subtree over the bytes, which begin with chunk number `first`.
function node(bytes, first) {
  if (bytes.length <= CHUNK) return chunk(bytes, first)
  const chunks = Math.ceil(bytes.length / CHUNK)
  const left = 2 ** (Math.ceil(Math.log2(chunks)) - 1)
  const block = new Uint32Array(16)
  block.set(chaining(node(bytes.subarray(0, left * CHUNK), first)))
  block.set(chaining(node(bytes.subarray(left * CHUNK), first + left)), 8)
  return { value: IV, block, counter: 0, length: BLOCK, flags: PARENT }
}

function chunk(bytes, number) {
  let value = IV
  const blocks = Math.max(1, Math.ceil(bytes.length / BLOCK))
  for (let place = 0; ; place++) {
    const part = bytes.subarray(place * BLOCK, (place + 1) * BLOCK)
    const flags = (place === 0 ? CHUNK_START : 0) | (place === blocks - 1 ? CHUNK_END : 0)
    const last = { value, block: words(part), counter: number, length: part.length, flags }
    if (place === blocks - 1) return last
    value = chaining(last)
  }
}

function words(part) {
  const padded = new Uint8Array(BLOCK)
  padded.set(part)
  const view = new DataView(padded.buffer)
  return Uint32Array.from({ length: 16 }, (_, place) => view.getUint32(4 * place, true))
}

function chaining(last) {
  return compress(last).subarray(0, 8)
}

function compress({ value, block, counter, length, flags, root = 0 }) {
  const state = new Uint32Array(16)
  state.set(value)
  state.set(IV.subarray(0, 4), 8)
  state.set([counter >>> 0, Math.floor(counter / 2 ** 32), length, flags | root], 12)
  let message = block
  for (let round = 0; round < 7; round++) {
    mix(state, 0, 4, 8, 12, message[0], message[1])
    mix(state, 1, 5, 9, 13, message[2], message[3])
    mix(state, 2, 6, 10, 14, message[4], message[5])
    mix(state, 3, 7, 11, 15, message[6], message[7])
    mix(state, 0, 5, 10, 15, message[8], message[9])
    mix(state, 1, 6, 11, 12, message[10], message[11])
    mix(state, 2, 7, 8, 13, message[12], message[13])
    mix(state, 3, 4, 9, 14, message[14], message[15])
    message = Uint32Array.from(PERMUTATION, (place) => message[place])
  }
  for (let place = 0; place < 8; place++) {
    state[place] ^= state[place + 8]
    state[place + 8] ^= value[place]
  }
  return state
}

function mix(state, a, b, c, d, x, y) {
  state[a] = state[a] + state[b] + x
  state[d] = turned(state[d] ^ state[a], 16)
  state[c] = state[c] + state[d]
  state[b] = turned(state[b] ^ state[c], 12)
  state[a] = state[a] + state[b] + y
  state[d] = turned(state[d] ^ state[a], 8)
  state[c] = state[c] + state[d]
  state[b] = turned(state[b] ^ state[c], 7)
}

function turned(word, bits) {
  return (word >>> bits) | (word << (32 - bits))
}
