import type { Estimate, DraftValidation } from '@/api/types'
import { formatBytes, formatCount, formatSeconds } from '@/lib/format'

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
      {plan?.local_seconds === null && (
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

function facts(plan: Estimate): [name: string, value: string, hint?: string][] {
  const { noise, K } = plan
  return [
    ['Weights tuned, d', formatCount(plan.d)],
    ['Coordinates, K', K === null ? 'none' : formatCount(K)],
    ['Sent per participant and round', bytes(plan.bytes_up)],
    ['Received per participant and round', bytes(plan.bytes_down)],
    [
      'Total',
      bytes(plan.total_bytes),
      `${plan.rounds} rounds of ${plan.participants} participants, in both directions`,
    ],
    [
      'Expected noise',
      noise ? `${noise.percent.toPrecision(2)} % of the weights` : 'none',
      noise ? `At most ${noise.largest.percent.toPrecision(2)} %, in ${noise.largest.block}` : undefined,
    ].filter((part) => part !== undefined) as [string, string, string?],
    ['Memory, participant', plan.memory_bytes === null ? 'unknown' : `about ${formatBytes(plan.memory_bytes)}`],
    [
      'Training per round',
      plan.local_seconds === null ? 'depends on the examples' : `about ${formatSeconds(plan.local_seconds)}`,
      'On a machine as fast as the server',
    ],
    ['Aggregation per round', `about ${formatSeconds(plan.aggregate_seconds)}`],
  ]
}

function bytes(count: number | null): string {
  return count === null ? 'known once the model is loaded' : formatBytes(count)
}
