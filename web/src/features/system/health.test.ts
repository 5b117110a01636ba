import { expect, test } from 'vitest'

import type { System } from '@/api/types'

import { healthIssues } from './health'

const GOOD = { ready: true, detail: null }
const WELL: System = {
  version: '0.1.0',
  time: '2026-11-25T00:00:00Z',
  parts: { ready: true, database: GOOD, migrations: GOOD, broker: GOOD, storage: GOOD },
  broker_silent_since: null,
  database: { kind: 'sqlite', revision: '0021', size: 1e6 },
  storage: { kind: 'file', place: '/srv/ferret/storage' },
  disk: { total: 1e12, free: 5e11 },
  queues: [{ queue: 'train', workers: 1, waiting: 7, oldest: '2026-11-25T00:00:00Z', messages: 1 }],
  unsent: { waiting: 0, oldest: null },
  given_up: 0,
  experiments: {},
  workers: [],
}

test('where all is well there is nothing to do, whatever waits', () => {
  expect(healthIssues(WELL)).toEqual([])
})

test('a part that is missing comes first, in the words of the server', () => {
  const broker = { ready: false, detail: 'the broker does not answer; start Redis' }
  const found = healthIssues({ ...WELL, given_up: 2, parts: { ...WELL.parts, ready: false, broker } })
  expect(found.map(({ title }) => title)).toEqual(['The broker cannot be used', 'Tasks that were given up'])
  expect(found[0]?.detail).toBe(broker.detail)
})

test('a queue without a worker comes with the command that starts one, whether anything waits or not', () => {
  const idle = { queue: 'playground', workers: 0, waiting: 0, oldest: null, messages: 0 } as const
  const stuck = { ...idle, queue: 'train', waiting: 1 } as const
  const found = healthIssues({ ...WELL, queues: [stuck, idle] })
  expect(found.map(({ command }) => command)).toEqual(['ferret worker train', 'ferret worker playground'])
  expect(found[0]?.detail).toContain('1 task waits for one.')
  expect(found[1]?.detail).not.toContain('wait')
})

test('a nearly full disk is reported before anything fails', () => {
  expect(healthIssues({ ...WELL, disk: { total: 1e12, free: 1.5e9 } })[0]?.detail).toContain('1.5 GB')
})
