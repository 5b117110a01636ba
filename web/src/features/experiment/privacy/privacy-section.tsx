import './privacy.css'

import { useQuery } from '@tanstack/react-query'

import { roundsQuery } from '@/api/queries'
import type { Experiment } from '@/api/types'
import { formatCount } from '@/lib/format'
import { DefinitionItem } from '@/lib/ui/definition-item'

import { protectedRecords, spentEpsilon, sumText } from './privacy-text'

/** The readers of contributions, the secure sums, and the protection of records as far as it is spent. */
export function PrivacySection({ experiment }: { experiment: Experiment }) {
  const { privacy, spec } = experiment
  if (privacy === null) return null
  const masked = spec.secure.aggregation === 'masked'
  const useful = privacy.useful_coordinates
  return (
    <section aria-labelledby="privacy" data-testid="privacy">
      <header className="section-header">
        <h2 id="privacy">Privacy</h2>
        <span className="muted small">Readers of contributions</span>
      </header>
      <div className="privacy">
        <dl className="facts privacy-readers">
          {privacy.readers.map(({ who, what }) => (
            <DefinitionItem key={who} term={who}>
              {what}
            </DefinitionItem>
          ))}
        </dl>
        {(masked || useful !== null) && (
          <dl className="facts">
            {masked && <SumItems experiment={experiment} />}
            {useful !== null && <RecordItems experiment={experiment} useful={useful} audit={privacy.audit} />}
          </dl>
        )}
      </div>
    </section>
  )
}

function SumItems({ experiment: { id, spec } }: { experiment: Experiment }) {
  const { data: rounds = [] } = useQuery(roundsQuery(id))
  const last = rounds.findLast((round) => round.groups.length > 0)
  const { least, colluders } = spec.secure
  return (
    <>
      <DefinitionItem term="A sum needs">at least {least} participants</DefinitionItem>
      <DefinitionItem term="Colluders with the server">at most {colluders}</DefinitionItem>
      {last && <DefinitionItem term={`Summed in round ${last.number}`}>{sumText(last)}</DefinitionItem>}
    </>
  )
}

interface RecordProps {
  experiment: Experiment
  useful: number
  audit: string | null
}

function RecordItems({ experiment, useful, audit }: RecordProps) {
  const { spec } = experiment
  const { unit, delta, epsilon: limit } = spec.privacy
  const K = spec.algorithm.K
  return (
    <>
      <DefinitionItem term={`ε of ${protectedRecords(unit)}`}>
        <span title={`δ = ${delta}; every attempt at a round counts`}>
          {spentEpsilon(experiment)} of {limit} is spent
        </span>
      </DefinitionItem>
      <DefinitionItem term="Useful coordinates">
        <span title="K*: at K = K* noise and projection cost the same">
          K* = {formatCount(useful)}
          {typeof K === 'number' && `, K = ${formatCount(K)}`}
        </span>
      </DefinitionItem>
      <DefinitionItem term="Last audit">
        <span title="An attacker with all models and sums guessed the records among the data">{audit}</span>
      </DefinitionItem>
    </>
  )
}
