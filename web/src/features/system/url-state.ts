import type { Queue, WorkerStatus } from '@/api/types'
import { oneOf, type Search } from '@/lib/search-params'

export const QUEUES = ['train', 'aggregate', 'playground'] as const satisfies readonly Queue[]

/** The state in the address: `?queue=train&silent=1`. */
export interface SystemUrlState {
  /** Only the workers of this queue. */
  queue?: Queue | undefined
  /** Includes workers without a recent heartbeat. */
  silent?: '1' | undefined
}

export function parseSystemUrl(search: Search): SystemUrlState {
  return { queue: oneOf(QUEUES, search.queue), silent: oneOf(['1'], search.silent) }
}

export function shownWorkers(workers: readonly WorkerStatus[], { queue, silent }: SystemUrlState): WorkerStatus[] {
  return workers.filter(
    (worker) => (queue === undefined || worker.queue === queue) && (silent !== undefined || worker.alive),
  )
}
