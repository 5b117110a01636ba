// A participant of a FedAvg experiment, with nothing of Ferret: Node 20 and docs/reference/wire-format.md.
//
//     FERRET_CODE=… node participant.mjs https://ferret.example.org my-name
//
// Where a real one would train, it makes up a small update. Its key lives as long as the process.

import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { blake3 } from './blake3.mjs'
import { check } from './receipt.mjs'

const OVER = ['completed', 'failed', 'cancelled']
const LARGEST = 1e-4

const [url, name] = process.argv.slice(2)
const { publicKey, privateKey } = generateKeyPairSync('ed25519')
let token

async function ask(method, path, { body, headers = {} } = {}) {
  const authorization = token ? { Authorization: `Bearer ${token}` } : {}
  const answer = await fetch(`${url}/api/v1${path}`, { method, body, headers: { ...authorization, ...headers } })
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
  return answer
}

async function enrol() {
  const key = Buffer.from(publicKey.export({ format: 'jwk' }).x, 'base64url').toString('hex')
  const body = JSON.stringify({ code: process.env.FERRET_CODE, display_name: name, public_key: key })
  const joined = await ask('POST', '/participants', { body, headers: { 'Content-Type': 'application/json' } })
  return joined.json()
}

// How many parameters the model has, by the header of its weights.
async function parameters(experiment) {
  const path = `/experiments/${experiment}/artifacts`
  const { items } = await (await ask('GET', path)).json()
  const base = items.filter((file) => file.round === 0 && file.name.endsWith('.safetensors'))
  let count = 0
  for (const file of base) {
    const bytes = Buffer.from(await (await ask('GET', `${path}/${file.id}`)).arrayBuffer())
    const header = JSON.parse(bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE())).toString())
    delete header.__metadata__
    for (const { shape } of Object.values(header)) count += shape.reduce((product, size) => product * size, 1)
  }
  return count
}

function contribution(task, count) {
  const update = Float32Array.from({ length: count }, () => LARGEST * (2 * Math.random() - 1))
  const { experiment, round, participant, base_digest } = task
  const meta = { format: 1, experiment, round, participant, algorithm: 'fedavg', base_digest, examples: 1 }
  const header = {
    __metadata__: { ferret: JSON.stringify(meta) },
    update: { dtype: 'F32', shape: [count], data_offsets: [0, 4 * count] },
  }
  const text = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(text.length))
  return Buffer.concat([length, text, Buffer.from(update.buffer)])
}

function signature(task, assignment, blob) {
  const { base_digest, experiment, participant, round } = task
  const purpose = 'ferret.contribution.1'
  // The keys in order of the alphabet, no blanks.
  const message = { assignment, base_digest, contribution: blake3(blob), experiment, participant, purpose, round }
  return sign(null, Buffer.from(JSON.stringify(message)), privateKey).toString('hex')
}

async function contribute({ id, fence, task }, count) {
  const blob = contribution(task, count)
  const own = signature(task, id, blob)
  const headers = {
    'Content-Type': 'application/octet-stream',
    'Idempotency-Key': randomBytes(16).toString('hex'),
    'Ferret-Fence': String(fence),
    'Ferret-Seconds': '0.1',
    'Ferret-Signature': own,
  }
  const taken = await (await ask('PUT', `/participant/assignments/${id}/contribution`, { body: blob, headers })).json()
  console.log(JSON.stringify(taken))
  return { round: task.round, participant: task.participant, contribution: blake3(blob), signature: own }
}

// Whether the ledger holds what the service has taken.
async function checkReceipt(experiment, sent) {
  const path = `/experiments/${experiment}`
  const ledger = await (await ask('GET', `${path}/ledger?after=${sent.round - 1}&limit=1`)).json()
  const receipt = await (await ask('GET', `${path}/rounds/${sent.round}/receipts/${sent.participant}`)).json()
  const refused = check(receipt, sent, ledger.items[0].hash)
  console.log(JSON.stringify({ round: sent.round, receipt: receipt.hash, refused }))
}

const { experiment, token: given } = await enrol()
token = given
const sent = []
let count
for (;;) {
  const next = await (await ask('GET', '/participant/assignment')).json()
  if (OVER.includes(next.experiment_state)) break
  if (next.assignment) {
    count ??= await parameters(experiment)
    sent.push(await contribute(next.assignment, count))
  } else {
    await sleep(1000 * next.retry_after_seconds)
  }
}
for (const each of sent) await checkReceipt(experiment, each)
