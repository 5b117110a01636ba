import type { AlertEvent } from '@/api/types'

/** The events that an alert can report, in words. */
export const EVENTS = {
  completed: 'completes all rounds',
  stopped: 'stops early',
  failed: 'fails',
  cancelled: 'is cancelled',
  stalled: 'makes no progress',
} as const satisfies Record<AlertEvent, string>

export const EVENT_NAMES = Object.keys(EVENTS) as AlertEvent[]
