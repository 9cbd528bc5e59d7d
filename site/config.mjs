// The configuration of VitePress, which makes the site of docs. The pages stay as they are: their links work in the repository as well.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'

const docs = dirname(dirname(fileURLToPath(import.meta.url)))
const base = process.env.BASE || '/'
const repository = 'https://github.com/fluxcd/gating-controller'
const folders = ['start', 'guides', 'operate', 'secure', 'reference', 'contribute']

// The navigation is made of the folders. Their pages have the order of the links on the home page; a page without a link comes last.
const home = readFileSync(join(docs, 'index.md'), 'utf8')
const place = path => (home.indexOf(`(${path}`) + 1 || Infinity)

function pages(folder) {
  if (!existsSync(join(docs, folder))) return []
  return readdirSync(join(docs, folder), { recursive: true })
    .filter(name => name.endsWith('.md'))
    .map(name => `${folder}/${name}`)
    .sort((a, b) => place(a) - place(b) || a.localeCompare(b))
    .map(path => ({ text: title(path), link: '/' + path.replace(/(index)?\.md$/, '') }))
}

function title(path) {
  return /^# (.*)$/m.exec(readFileSync(join(docs, path), 'utf8'))[1].replaceAll('`', '')
}

// GitHub makes the anchors of headings in this way.
function slugify(heading) {
  return heading.trim().toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-')
}

// Pages and pictures are part of the site. Other files are in the repository.
function relink(md) {
  md.core.ruler.push('relink', state => {
    const from = posix.dirname(state.env.relativePath ?? '')
    for (const token of state.tokens.flatMap(t => t.children ?? [])) {
      const href = token.type === 'link_open' ? token.attrGet('href') : null
      if (!href || /^([a-z]+:|#|\/)/.test(href)) continue
      const [path, anchor] = href.split('#')
      const to = posix.join('docs', from, path)
      if (to.startsWith('docs/') && /(\.md|\/)$/.test(to)) {
        token.attrSet('href', href.replace(/README\.md/, 'index.md'))
      } else {
        token.attrSet('href', `${repository}/tree/main/${to}${anchor ? '#' + anchor : ''}`)
      }
    }
  })
}

export default {
  title: 'gating-controller',
  description: 'A Gate says when Flux may apply',
  base,
  ignoreDeadLinks: 'localhostLinks', // that of the page that kubectl gate ui serves
  head: [['link', { rel: 'icon', href: `${base}icon.svg` }]],
  markdown: { anchor: { slugify }, config: relink },
  themeConfig: {
    logo: '/icon.svg',
    search: { provider: 'local' },
    outline: [2, 3],
    socialLinks: [{ icon: 'github', link: repository }],
    sidebar: folders.map(folder => ({ text: folder[0].toUpperCase() + folder.slice(1), items: pages(folder) })).filter(group => group.items.length > 0),
  },
}
