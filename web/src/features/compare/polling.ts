import type { Experiment } from '@/api/types'

const AT_LEAST = 5000
const EACH = 1000

/** Milliseconds between two requests for the same experiment. All experiments together cause one request a second at most. */
export function pollMilliseconds(experiments: number): number {
  return Math.max(AT_LEAST, experiments * EACH)
}

/** Changes when the experiment's curves have. */
export function metricsStamp({ state, round, metrics }: Experiment): string {
  return JSON.stringify([state, round, metrics])
}
