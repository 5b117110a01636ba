import {
  createBrowserHistory,
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Link,
  type RouterHistory,
} from '@tanstack/react-router'

import { parseView as parsePeopleView } from '@/features/admin/url-state'
import { parseView as parseAlertsView } from '@/features/alerts/url-state'
import { parseView as parseCompareView } from '@/features/compare/url-state'
import { ExperimentPage } from '@/features/experiment/experiment-page'
import { parseView } from '@/features/experiment/url-state'
import { ExperimentsPage } from '@/features/experiments/experiments-page'
import { parseView as parseListView } from '@/features/experiments/url-state'
import { parseView as parseNewView } from '@/features/submit/url-state'
import { parseView as parseSystemView } from '@/features/system/url-state'
import { parseSearch, stringifySearch } from '@/lib/search-params'

import { BrokenPage } from './broken-page'
import { Shell } from './shell'

// Few visits need these, so their code comes with the first that does.
const AccountPage = lazyRouteComponent(() => import('@/features/account/account-page'), 'AccountPage')
const ComparePage = lazyRouteComponent(() => import('@/features/compare/compare-page'), 'ComparePage')
const NewPage = lazyRouteComponent(() => import('@/features/submit/submit-page'), 'NewPage')

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound })

const experiments = createRoute({
  getParentRoute: () => root,
  path: '/',
  validateSearch: parseListView,
  component: function Experiments() {
    const navigate = experiments.useNavigate()
    return (
      <ExperimentsPage
        view={experiments.useSearch()}
        onView={(search) => void navigate({ search, replace: true, resetScroll: false })}
      />
    )
  },
})

const experiment = createRoute({
  getParentRoute: () => root,
  path: '/experiments/$id',
  validateSearch: parseView,
  component: function Experiment() {
    const { id } = experiment.useParams()
    const navigate = experiment.useNavigate()
    return (
      <ExperimentPage
        key={id}
        id={id}
        view={experiment.useSearch()}
        onView={(search) => void navigate({ search, replace: true, resetScroll: false })}
      />
    )
  },
})

const compare = createRoute({
  getParentRoute: () => root,
  path: '/compare',
  validateSearch: parseCompareView,
  component: function Compare() {
    const navigate = compare.useNavigate()
    return (
      <ComparePage
        view={compare.useSearch()}
        onView={(search) => void navigate({ search, replace: true, resetScroll: false })}
      />
    )
  },
})

const fresh = createRoute({
  getParentRoute: () => root,
  path: '/new',
  validateSearch: parseNewView,
  component: function New() {
    const navigate = fresh.useNavigate()
    return (
      <NewPage
        view={fresh.useSearch()}
        onView={(search) => void navigate({ search, replace: true, resetScroll: false })}
      />
    )
  },
})

/** Who looks after the service sees these pages, and most others never do. */
const SystemPage = lazyRouteComponent(() => import('@/features/system/system-page'), 'SystemPage')

const system = createRoute({
  getParentRoute: () => root,
  path: '/system',
  validateSearch: parseSystemView,
  component: function System() {
    const navigate = system.useNavigate()
    return (
      <SystemPage
        view={system.useSearch()}
        onView={(search) => void navigate({ search, replace: true, resetScroll: false })}
      />
    )
  },
})

const AlertsPage = lazyRouteComponent(() => import('@/features/alerts/alerts-page'), 'AlertsPage')

const alerts = createRoute({
  getParentRoute: () => root,
  path: '/alerts',
  validateSearch: parseAlertsView,
  component: function Alerts() {
    const navigate = alerts.useNavigate()
    return (
      <AlertsPage
        view={alerts.useSearch()}
        onView={(search) => void navigate({ search, replace: true, resetScroll: false })}
      />
    )
  },
})

const PeoplePage = lazyRouteComponent(() => import('@/features/admin/admin-page'), 'PeoplePage')

const people = createRoute({
  getParentRoute: () => root,
  path: '/people',
  validateSearch: parsePeopleView,
  component: function People() {
    const navigate = people.useNavigate()
    return (
      <PeoplePage
        view={people.useSearch()}
        onView={(search) => void navigate({ search, replace: true, resetScroll: false })}
      />
    )
  },
})

const account = createRoute({ getParentRoute: () => root, path: '/account', component: AccountPage })

function NotFound() {
  return (
    <main className="page">
      <section className="empty">
        <h1>No such page</h1>
        <p>
          <Link to="/">See all experiments</Link>
        </p>
      </section>
    </main>
  )
}

const routeTree = root.addChildren([experiments, experiment, compare, fresh, alerts, system, people, account])

/** Routes by the browser's own history, or by the one that a test hands in. */
export function dashboardRouter(history: RouterHistory = createBrowserHistory()) {
  return createRouter({
    routeTree,
    history,
    parseSearch,
    stringifySearch,
    scrollRestoration: true,
    defaultErrorComponent: BrokenPage,
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof dashboardRouter>
  }
}
