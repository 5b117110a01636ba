import type { EventType } from '@/api/events'
import type { Event } from '@/api/types'
import { capitalised, formatBytes, formatCounted, shortDigest } from '@/lib/format'
import { formatMetric, type MetricName, METRICS } from '@/lib/metrics'

export const EVENT_KINDS = ['experiment', 'round', 'contribution', 'participant', 'evaluation', 'checkpoint'] as const
export type EventKind = (typeof EVENT_KINDS)[number]

export function kindOf(event: Event): string {
  return event.type.split('.')[0] ?? ''
}

/** The event in one word: `opened`, `accepted`. */
export function verbOf(event: Event): string {
  return event.type.split('.')[1] ?? event.type
}

/** Events of these kinds, or of all, that contain the search text; newest first. */
export function shownEvents(events: Event[], kinds: readonly string[], text: string): Event[] {
  const wanted = text.trim().toLowerCase()
  const holds = (event: Event) =>
    wanted === '' || `${event.type} round ${event.round ?? ''} ${eventText(event)}`.toLowerCase().includes(wanted)
  return events.filter((event) => (kinds.length === 0 || kinds.includes(kindOf(event))) && holds(event)).toReversed()
}

const TEXTS: Record<EventType, (event: Event) => string> = {
  'experiment.queued': (event) => `Queued as “${word(event, 'name')}”`,
  'experiment.running': (event) => `Base model loaded: ${shortDigest(word(event, 'base_digest'))}`,
  'experiment.paused': () => 'Paused: no work is handed out',
  'experiment.resumed': () => 'Resumed',
  'experiment.extended': (event) => `Now ${counted(event, 'rounds')} in total${patience(event)}`,
  'experiment.completed': ending,
  'experiment.failed': failure,
  'experiment.cancelled': () => 'Cancelled by a user',
  'participant.joined': (event) => `${word(event, 'participant')} joined`,
  'participant.approved': (event) => `${word(event, 'participant')} was approved`,
  'participant.refused': (event) => `${word(event, 'participant')} was refused`,
  'participant.revoked': (event) => `${word(event, 'participant')} was revoked`,
  'round.opened': (event) => `Opened for ${counted(event, 'participants')}${attempt(event)}`,
  'round.dealt': (event) => `${counted(event, 'dealers', 'participant')} exchanged keys for a secure sum`,
  'round.frozen': (event) => `Closed with ${counted(event, 'accepted', 'contribution')}`,
  'round.agreed': (event) => `${counted(event, 'signatures', 'participant')} signed the list of the sum`,
  'round.released': (event) => `${counted(event, 'members', 'participant')} removed the masks of the sum`,
  'round.committed': (event) => [`Model ${shortDigest(word(event, 'digest'))}`, ...metrics(event)].join(' · '),
  'round.evaluated': (event) => metrics(event).join(' · '),
  'round.abandoned': failure,
  'round.rolled_back': failure,
  'contribution.accepted': (event) => `From ${word(event, 'participant')}`,
  'contribution.rejected': (event) => `From ${word(event, 'participant')}: ${failure(event)}`,
  'evaluation.failed': failure,
  'checkpoint.written': checkpoint,
  'checkpoint.rebuilt': checkpoint,
}

/** An event as a sentence; of a newer server's event only its name is known. */
export function eventText(event: Event): string {
  return (TEXTS as Partial<Record<string, (event: Event) => string>>)[event.type]?.(event) ?? ''
}

function word({ data }: Event, name: string): string {
  const value = data[name]
  return typeof value === 'string' ? value : '?'
}

/** "1 file", "12 files": the number `name` of the event, with its noun. */
function counted({ data }: Event, name: string, noun = name.replace(/s$/, '')): string {
  const value = data[name]
  return typeof value === 'number' ? formatCounted(value, noun) : `? ${noun}s`
}

function ending({ data: { stopped } }: Event): string {
  const detail = (stopped as { detail?: unknown } | undefined)?.detail
  return typeof detail === 'string' ? capitalised(detail) : 'All rounds are committed'
}

function patience({ data: { stopped_after: round } }: Event): string {
  return typeof round === 'number' ? `, with new patience: it had stopped early after round ${round}` : ''
}

function attempt({ data: { attempt: number } }: Event): string {
  return typeof number === 'number' && number > 1 ? `, attempt ${number}` : ''
}

function failure(event: Event): string {
  const said = ['code', 'detail'].filter((name) => name in event.data).map((name) => word(event, name))
  return said.length > 0 ? said.join(': ') : 'No result'
}

function checkpoint(event: Event): string {
  const { bytes } = event.data
  return `${counted(event, 'files')}${typeof bytes === 'number' ? `, ${formatBytes(bytes)}` : ''}`
}

const TOLD: MetricName[] = ['train_loss', 'eval_loss', 'rouge_l', 'exact_match']

function metrics({ data }: Event): string[] {
  const found = (data.metrics ?? {}) as Partial<Record<string, unknown>>
  return TOLD.flatMap((name) => {
    const value = found[name]
    return typeof value === 'number' ? [`${METRICS[name].label} ${formatMetric(name, value)}`] : []
  })
}
