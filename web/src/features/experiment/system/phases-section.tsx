import { useQuery } from '@tanstack/react-query'

import { roundsQuery } from '@/api/queries'
import { formatSeconds } from '@/lib/format'
import { DefinitionItem } from '@/lib/ui/definition-item'

import { phasesOf } from './phases'

/** The duration of each phase of a round. */
export function PhasesSection({ id }: { id: string }) {
  const { data: rounds = [] } = useQuery(roundsQuery(id))
  const phases = phasesOf(rounds)
  return (
    <section aria-labelledby="phases" data-testid="phases">
      <header className="section-header">
        <h2 id="phases">Time per phase of a round</h2>
        {phases.length > 0 && <span className="muted small">Medians</span>}
      </header>
      {phases.length === 0 ? (
        <p className="muted">No round has closed yet.</p>
      ) : (
        <dl className="facts boxed">
          {phases.map(({ term, usual, longest }) => (
            <DefinitionItem key={term} term={term}>
              <span title={`Longest: ${formatSeconds(longest.seconds)}, round ${longest.round}`}>
                {formatSeconds(usual)}
              </span>
            </DefinitionItem>
          ))}
        </dl>
      )}
    </section>
  )
}
