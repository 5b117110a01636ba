import type { Queue, WorkerStatus } from '@/api/types'
import { oneOf, type Search } from '@/lib/search-params'

export const QUEUES = ['train', 'aggregate', 'playground'] as const satisfies readonly Queue[]

/** What the address holds: `?queue=train&silent=1`. */
export interface View {
  /** Only the workers of this queue. */
  queue?: Queue | undefined
  /** Those too that gave no sign of life lately. */
  silent?: '1' | undefined
}

export function parseView(search: Search): View {
  return { queue: oneOf(QUEUES, search.queue), silent: oneOf(['1'], search.silent) }
}

export function shownWorkers(workers: readonly WorkerStatus[], { queue, silent }: View): WorkerStatus[] {
  return workers.filter(
    (worker) => (queue === undefined || worker.queue === queue) && (silent !== undefined || worker.alive),
  )
}
