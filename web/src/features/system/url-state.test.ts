import { expect, test } from 'vitest'

import type { WorkerStatus } from '@/api/types'

import { parseSystemUrl, shownWorkers } from './url-state'

const worker = (id: string, queue: WorkerStatus['queue'], alive: boolean) => ({ id, queue, alive }) as WorkerStatus

test('an address typed wrongly filters nothing', () => {
  expect(parseSystemUrl({ queue: 'nonsense', silent: 'yes' })).toEqual({ queue: undefined, silent: undefined })
  expect(parseSystemUrl({ queue: 'train', silent: '1' })).toEqual({ queue: 'train', silent: '1' })
})

test('silent workers are left out by default', () => {
  const all = [worker('a', 'train', true), worker('b', 'train', false), worker('c', 'aggregate', true)]
  const ids = (view: Parameters<typeof shownWorkers>[1]) => shownWorkers(all, view).map(({ id }) => id)
  expect(ids({})).toEqual(['a', 'c'])
  expect(ids({ queue: 'train' })).toEqual(['a'])
  expect(ids({ queue: 'train', silent: '1' })).toEqual(['a', 'b'])
})
