import type { Estimate, DraftValidation } from '@/api/types'
import { formatBytes, formatCount, formatCounted, formatDigits, formatSeconds } from '@/lib/format'

import { type Shape, SHAPES } from './url-state'

interface Props {
  planned: DraftValidation | undefined
  /** True while the plan for the current form is loading. */
  waiting: boolean
  /** Values that have no default and are not given yet. */
  missing: readonly string[]
  shape: Shape | undefined
  examples: number | undefined
  onShape: (shape: Shape | undefined) => void
  onExamples: (examples: number | undefined) => void
}

/** The traffic, memory, time and advice for the experiment, as `ferret plan` shows them. */
export function PlanPanel({ planned, waiting, missing, shape, examples, onShape, onExamples }: Props) {
  const plan = planned?.plan
  const unplanned = planned?.unplanned
  return (
    <section aria-labelledby="plan" aria-busy={waiting} className="spec-panel" data-testid="plan">
      <h2 id="plan">Plan</h2>
      <label className="spec-inline small">
        <span>For</span>
        <select
          value={shape ?? ''}
          onChange={(event) => {
            onShape(SHAPES.find((known) => known === event.target.value))
          }}
        >
          <option value="">this model</option>
          {SHAPES.map((known) => (
            <option key={known}>{known}</option>
          ))}
        </select>
      </label>
      {plan && <Facts plan={plan} />}
      {plan && needsExamples(plan, examples) && (
        <label className="spec-inline small">
          <span>Examples per participant</span>
          <input
            type="number"
            min={1}
            value={examples ?? ''}
            onChange={(event) => {
              onExamples(event.target.valueAsNumber > 0 ? event.target.valueAsNumber : undefined)
            }}
          />
        </label>
      )}
      {plan?.advice.map((advice) => (
        <p key={advice} className="spec-advice small">
          {advice}
        </p>
      ))}
      {!plan && unplanned && (
        <p className="muted small">{unplanned.detail} You can choose a model of about its size above.</p>
      )}
      {planned?.problem && (
        <p className="muted small">
          {missing.length > 0
            ? `The plan appears once these are set: ${missing.join(', ')}.`
            : 'The plan appears once the specification is valid.'}
        </p>
      )}
    </section>
  )
}

/** Memory and time are estimated together or not at all; then examples would not help. */
function needsExamples({ local_seconds: seconds, memory_bytes: memory }: Estimate, examples: number | undefined) {
  return memory !== null && (seconds === null || examples !== undefined)
}

function trainingTime({ local_seconds: seconds, memory_bytes: memory }: Estimate): string {
  if (seconds !== null) return `about ${formatSeconds(seconds)}`
  return memory === null ? 'not estimated for this algorithm' : 'depends on the examples'
}

function Facts({ plan }: { plan: Estimate }) {
  return (
    <dl className="spec-facts">
      {facts(plan).map(([name, value, hint]) => (
        <div key={name}>
          <dt title={hint}>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

function coordinates({ K, sent }: Estimate): string {
  if (K === null || sent === null) return 'none'
  return sent === K ? formatCount(K) : `${formatCount(sent)}, the largest of ${formatCount(K)}`
}

function facts(plan: Estimate): [name: string, value: string, hint?: string][] {
  const { noise } = plan
  return [
    ['Weights tuned, d', formatCount(plan.d)],
    ['Coordinates, K', coordinates(plan)],
    ['Sent per participant and round', bytes(plan.bytes_up)],
    ['Received per participant and round', bytes(plan.bytes_down)],
    [
      'Total',
      bytes(plan.total_bytes),
      `${formatCounted(plan.rounds, 'round')} of ${formatCounted(plan.participants, 'participant')}, in both directions`,
    ],
    [
      'Expected noise',
      noise ? `${formatDigits(noise.percent, 2)} % of the weights` : 'none',
      noise ? `At most ${formatDigits(noise.largest.percent, 2)} %, in ${noise.largest.block}` : undefined,
    ].filter((part) => part !== undefined) as [string, string, string?],
    [
      'Accumulated noise',
      noise ? `${formatDigits(noise.accumulated_percent, 2)} % of the weights` : 'none',
      `After ${formatCounted(plan.rounds, 'round')}: the squares of their noises add up`,
    ],
    ...sums(plan),
    ...privacy(plan.privacy),
    [
      'Memory, participant',
      plan.memory_bytes === null ? 'not estimated for this algorithm' : `about ${formatBytes(plan.memory_bytes)}`,
      plan.least_memory_bytes === null
        ? undefined
        : `With little memory, slower: ${formatBytes(plan.least_memory_bytes)}`,
    ].filter((part) => part !== undefined) as [string, string, string?],
    [
      'Disk of the server',
      bytes(plan.disk_bytes),
      `At the end, with ${formatCounted(plan.checkpoints, 'model')} and the updates and contributions of all rounds`,
    ],
    ['Training per round', trainingTime(plan), 'On a machine as fast as the server'],
    ...projection(plan.projection_seconds),
    ['Aggregation per round', `about ${formatSeconds(plan.aggregate_seconds)}`],
  ]
}

function sums({ bytes_up: up, sums: found }: Estimate): [string, string, string?][] {
  if (found === null) return []
  const { bits, key_bytes: keys, members, survivors, plain_bytes: plain, least_noise: least, most_noise: most } = found
  const noise = least !== null && most !== null && `${formatDigits(least, 2)} to ${formatDigits(most, 2)} times`
  return [
    [
      'Secure sum',
      `${survivors} of ${members} must stay`,
      `${bits} bits for each number, and ${formatBytes(keys)} of keys and shares`,
    ],
    [
      'Bytes, against no sum',
      `${formatDigits((up ?? 0) / plain, 2)} times`,
      `${formatBytes(plain)} from each participant without a sum`,
    ],
    ...(noise
      ? [['Noise energy, against no sum', noise, 'More if updates agree more'] satisfies [string, string, string]]
      : []),
  ]
}

function privacy(found: Estimate['privacy']): [string, string, string?][] {
  if (found === null) return []
  const spent = found.epsilon === null ? 'unknown' : formatDigits(found.epsilon, 3)
  return [
    ['Protected records, ε', spent, `Unit ${found.unit}, δ = ${found.delta}, noise z = ${found.noise_multiplier}`],
    [
      'Useful coordinates, K*',
      formatCount(Math.round(found.useful)),
      `The noise is ${formatDigits(found.relative_noise, 2)} times that of dense updates with the same ε`,
    ],
  ]
}

function projection(seconds: number | null): [string, string][] {
  return seconds === null ? [] : [['Projection per round', `about ${formatSeconds(seconds)}`]]
}

function bytes(count: number | null): string {
  return count === null ? 'known once the model is loaded' : formatBytes(count)
}
