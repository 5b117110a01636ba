import { useQuery } from '@tanstack/react-query'

import { toProblem } from '@/api/problem'
import { roundsQuery } from '@/api/queries'
import { ProblemNotice } from '@/lib/ui/problem-notice'

import { ParticipantsTable } from './participants-table'
import { RoundsTable } from './rounds-table'

interface Props {
  id: string
  chosen: number | undefined
}

/** The rounds, and who took part in the chosen one: by default the newest. */
export function Rounds({ id, chosen }: Props) {
  const { data: rounds = [], error, isPending } = useQuery(roundsQuery(id))
  const selected = rounds.findLast((round) => round.number === chosen) ?? rounds.at(-1)

  return (
    <section aria-labelledby="rounds">
      <header className="section-header">
        <h2 id="rounds">Rounds</h2>
        {rounds.length > 1 && <span className="muted small">Press a round to see who took part</span>}
      </header>
      {error && <ProblemNotice problem={toProblem(error)} />}
      {rounds.length === 0 && !isPending && <p className="muted">No round has opened yet.</p>}
      {selected && (
        <>
          <RoundsTable id={id} rounds={rounds} selected={selected} />
          <h3 className="subheading">Participants in round {selected.number}</h3>
          <ParticipantsTable id={id} round={selected.number} />
        </>
      )}
    </section>
  )
}
