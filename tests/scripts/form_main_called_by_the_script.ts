async function main() { return 'called once' }
main()
