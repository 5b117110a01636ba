import './account.css'

import { useQuery } from '@tanstack/react-query'

import { meQuery } from '@/api/people'
import { toProblem } from '@/api/problem'
import { MAY } from '@/lib/roles'
import { ProblemNotice } from '@/lib/ui/notice'
import { useTitle } from '@/lib/use-title'

import { PasswordSection } from './password-section'
import { SessionsSection } from './sessions-section'
import { TokensSection } from './tokens-section'

export function AccountPage() {
  const { data: me, error } = useQuery(meQuery)
  useTitle('Your account')
  return (
    <main className="page">
      {error && <ProblemNotice problem={toProblem(error)} />}
      {me && (
        <>
          <header>
            <h1>{me.name}</h1>
            <p className="muted">
              {me.role}: {MAY[me.role]}
            </p>
            <p className="muted">
              {me.projects.length > 0
                ? `You see the experiments of ${me.projects.join(', ')}`
                : 'You are not in a project yet'}
            </p>
          </header>
          <PasswordSection me={me} />
          <TokensSection />
          <SessionsSection />
        </>
      )}
    </main>
  )
}
