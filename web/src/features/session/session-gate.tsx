import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'

import { type ApiProblem, toProblem } from '@/api/problem'
import { infoQuery } from '@/api/queries'
import { ProblemNotice } from '@/lib/ui/notice'

import { SignIn } from './sign-in'

interface Props {
  /** The problem with the token of the address, if it was refused. */
  refused: ApiProblem | undefined
  children: ReactNode
}

/** Shows the dashboard with a session, and the sign-in form without. */
export function SessionGate({ refused, children }: Props) {
  const info = useQuery(infoQuery)
  if (info.isPending) return null
  if (info.error === null) return children

  const problem = toProblem(info.error)
  if (problem.status === 401) return <SignIn refused={refused} />
  return (
    <main className="page narrow">
      <ProblemNotice problem={problem}>
        <button type="button" className="button" onClick={() => void info.refetch()}>
          Try again
        </button>
      </ProblemNotice>
    </main>
  )
}
