import type { Estimate, DraftValidation } from '@/api/types'
import { formatBytes, formatCount, formatSeconds } from '@/lib/format'

import { SHAPES, type Shape } from './view'

interface Props {
  planned: DraftValidation | undefined
  /** An answer to what is in the form now is under way. */
  waiting: boolean
  /** Values that have no default and are not given yet. */
  missing: readonly string[]
  shape: Shape | undefined
  examples: number | undefined
  onShape: (shape: Shape | undefined) => void
  onExamples: (examples: number | undefined) => void
}

/** What the experiment will send, need and risk, as `ferret plan` tells it. */
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
          <span>Examples of a participant</span>
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
        <p className="muted small">{unplanned.detail} Above you can choose a model of about its size.</p>
      )}
      {planned?.problem && (
        <p className="muted small">
          {missing.length > 0
            ? `The plan follows once there is: ${missing.join(', ')}.`
            : 'The plan follows once the specification is right.'}
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
    ['Up, each in a round', bytes(plan.bytes_up)],
    ['Down, each in a round', bytes(plan.bytes_down)],
    ['In all', bytes(plan.total_bytes), `${plan.rounds} rounds of ${plan.participants} participants, both ways`],
    [
      'Noise expected',
      noise ? `${noise.percent.toPrecision(2)} % of the weights` : 'none',
      noise ? `At most ${noise.largest.percent.toPrecision(2)} %, in ${noise.largest.block}` : undefined,
    ].filter((part) => part !== undefined) as [string, string, string?],
    ['Memory, participant', plan.memory_bytes === null ? 'unknown' : `about ${formatBytes(plan.memory_bytes)}`],
    [
      'Training, in a round',
      plan.local_seconds === null ? 'depends on the examples' : `about ${formatSeconds(plan.local_seconds)}`,
      'On a machine as fast as the server',
    ],
    ['Aggregation, in a round', `about ${formatSeconds(plan.aggregate_seconds)}`],
  ]
}

function bytes(count: number | null): string {
  return count === null ? 'known once it is loaded' : formatBytes(count)
}
